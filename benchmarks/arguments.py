"""What every benchmark is told on its command line."""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser for the graphs to measure on, the folder to write to and the number of threads."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--graphs", type=Path, default=Path("results/graphs"), help="folder of prepared graphs"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results"), help="folder to write to"
    )
    parser.add_argument(
        "--datasets", nargs="+", default=["cora", "citeseer", "pubmed", "msacademic"]
    )
    parser.add_argument("--threads", type=int, default=1, help="PyTorch threads")
    return parser


def add_work(parser: argparse.ArgumentParser) -> None:
    """Let a benchmark of the workflow be told where to keep what it makes, so that the same command
    goes on after a crash.
    """
    parser.add_argument(
        "--work", type=Path, metavar="DIR", help="folder of all that is made, which is kept"
    )


@contextmanager
def work_folder(given: Path | None) -> Iterator[Path]:
    """The folder that ``--work`` gives, or one that is removed at the end."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
