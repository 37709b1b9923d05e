"""Stage ``report``: tables and figures on one page that needs no network."""

import argparse
from pathlib import Path

from feddep.stages import flags

HELP = "write the report, one HTML page; --print shows the main table in the terminal"
COMMAND = "report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    flags.add_config(parser)
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that report.html is put in")
    parser.add_argument(
        "--study",
        action="append",
        default=[],
        metavar="NAME=DIR",
        help="a finished study to show as well; may be given several times",
    )
    parser.add_argument("--print", action="store_true", help="also print the main table and where table, figure and report lie")


def main(arguments: argparse.Namespace) -> None:
    """Write report.html, and print the main table if asked to."""
    from feddep.reporting import files, page, page_keys
    from feddep.reporting.results import collect

    results, studies = collect(flags.config_of(arguments)), flags.named_files("study", arguments.study)
    files.write(
        arguments.output, {"report.html": page.html(results, studies)}, "report", page_keys.shown_in_tables(results.config)
    )
    if arguments.print:
        output = Path(results.config["output"])
        drawn = [output / "figures" / f"accuracy_{table.setting}.png" for table in results.main_tables]
        shown = [
            ("table", output / "tables" / "accuracy.md"),
            *(("figure", file) for file in drawn),
            ("report", arguments.output / "report.html"),
        ]
        print(results.printed())
        print("\n".join(f"{what:8}{file}" for what, file in shown if file.exists()))
