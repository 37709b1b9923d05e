"""Stage ``study``: the table, page and figure of one study."""

import argparse
from pathlib import Path

HELP = "write the tables and draw the figure of a study"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument("--study", required=True, metavar="NAME", help="name of the study in the configuration")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder that tables and figure are put in")


def main(arguments: argparse.Namespace) -> None:
    """Write table.csv (and what other tables the study's kind has), table.md, figure.svg, figure.png and provenance.json."""
    from feddep.csv_files import write_csv
    from feddep.reporting import figures, provenance, studies
    from feddep.reporting.studies.common import text
    from feddep.reporting.studies.common.study import load
    from feddep.storage import read_json, write_json, write_text

    config = read_json(arguments.config)
    study = load(config, arguments.study)
    kind = studies.load(study.name, config["studies"][study.name]["kind"])
    tables = kind.tables(study)
    page = text.page(study, kind.SHOWS, kind.markdown(study, tables))
    drawn = kind.figure(study, tables)
    directory = arguments.output
    for name, table in tables.items():
        write_csv(directory / f"{name}.csv", table)
    write_text(directory / "table.md", page)
    figures.write(drawn, directory, "figure")
    write_json(directory / "provenance.json", provenance.summarise(config, study.finished, study.name))
