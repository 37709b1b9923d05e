"""What every benchmark is told on its command line."""

import argparse
from pathlib import Path


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser for the graphs to measure on, the folder to write to and the number of threads."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=Path, default=Path("results/graphs"), help="folder of prepared graphs")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"), help="folder to write to")
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed", "msacademic"])
    parser.add_argument("--threads", type=int, default=1, help="PyTorch threads")
    return parser
