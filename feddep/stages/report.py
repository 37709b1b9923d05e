"""Stage ``report``: tables and figures on one page that needs no network."""

import argparse
from pathlib import Path

HELP = "write the report, one HTML page; --print shows the main table in the terminal"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that report.html is put in")
    parser.add_argument("--print", action="store_true", help="also print the main table and where table, figure and report lie")


def main(arguments: argparse.Namespace) -> None:
    """Write report.html, and print the main table if asked to."""
    from feddep.reporting import page, terminal
    from feddep.reporting.findings import collect
    from feddep.storage import read_json, write_text

    findings = collect(read_json(arguments.config))
    path = arguments.output / "report.html"
    write_text(path, page.html(findings))
    if arguments.print:
        output = Path(findings.config["output"])
        made = {"table": output / "tables" / "accuracy.md", "figure": output / "figures" / "accuracy.png", "report": path}
        print(terminal.accuracy(findings.accuracy))
        print("\n".join(f"{what:8}{file}" for what, file in made.items() if file.exists()))
