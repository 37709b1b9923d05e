"""Stage ``tables``: every number of the benchmark beside the published one."""

import argparse
from pathlib import Path

HELP = "write the tables: accuracy, comparisons, costs, partitions, provenance"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that the tables are put in")


def main(arguments: argparse.Namespace) -> None:
    """Write accuracy.{csv,md,tex}, comparisons.csv, costs.{csv,md}, partitions.{csv,md} and provenance.json."""
    from feddep.csv_files import write_csv
    from feddep.reporting import costs, latex, markdown, provenance
    from feddep.reporting.findings import collect
    from feddep.storage import read_json, write_json, write_text

    findings = collect(read_json(arguments.config))
    best, last = findings.grids("best"), findings.grids("last")
    directory = arguments.output
    for name in ("accuracy", "comparisons", "costs", "partitions"):
        # Six digits: more than any test set resolves.
        write_csv(directory / f"{name}.csv", getattr(findings, name))
    write_text(directory / "accuracy.md", markdown.accuracy(best, last))
    write_text(directory / "accuracy.tex", latex.accuracy(best, last))
    write_text(directory / "costs.md", costs.markdown(findings.costs))
    write_text(directory / "partitions.md", markdown.partitions(findings.partitions))
    write_json(directory / "provenance.json", provenance.summarise(findings.config, findings.finished))
