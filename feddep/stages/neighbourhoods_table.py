"""Stage ``neighbourhoods_table``: mended neighbourhoods of several runs beside FedSage's, in two tables and a figure."""

import argparse
from pathlib import Path

HELP = "write the tables and the figure of mended neighbourhoods beside the true ones"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--config", type=Path, required=True, help="resolved configuration, JSON")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder of results, for tables/ and figures/ below it"
    )


def main(arguments: argparse.Namespace) -> None:
    """Write tables/neighbourhoods.{csv,md}, tables/missing_neighbours.csv and figures/missing_neighbours."""
    from feddep.csv_files import write_csv
    from feddep.reporting import figures, neighbourhoods
    from feddep.storage import read_json, write_text

    distances, counts = neighbourhoods.load(read_json(arguments.config))
    near, missing = neighbourhoods.summarise(distances), neighbourhoods.summarise_counts(counts)
    tables = arguments.output / "tables"
    for name, table in {"neighbourhoods": near, "missing_neighbours": missing}.items():
        write_csv(tables / f"{name}.csv", table)
    write_text(tables / "neighbourhoods.md", neighbourhoods.markdown(near, missing))
    figures.write(neighbourhoods.figure(counts), arguments.output / "figures", "missing_neighbours")
