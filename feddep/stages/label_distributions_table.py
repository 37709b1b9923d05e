"""Stage ``label_distributions_table``: the label distributions of several runs in one table and figure."""

import argparse
from pathlib import Path

HELP = "write the table and figure of label distributions, held and predicted"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder of results, for tables/ and figures/ below it"
    )


def main(arguments: argparse.Namespace) -> None:
    """Write tables/label_distributions.csv, a row a place and framework, its .md, and figures/label_distributions."""
    from feddep.csv_files import write_csv
    from feddep.reporting import figures, label_distributions
    from feddep.storage import read_json, write_text

    measured = label_distributions.load(read_json(arguments.config))
    summary = label_distributions.summarise(measured)
    tables = arguments.output / "tables"
    write_csv(tables / "label_distributions.csv", summary)
    write_text(tables / "label_distributions.md", label_distributions.markdown(summary))
    figures.write(label_distributions.figure(measured), arguments.output / "figures", "label_distributions")
