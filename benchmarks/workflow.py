"""Calls of Snakemake that benchmarks time."""

import sys
from pathlib import Path


def snakemake(target: Path, config: Path, cores: int = 1) -> list[str]:
    """A call of Snakemake that makes a file, with a configuration over that of the project."""
    return [sys.executable, "-m", "snakemake", str(target), "--cores", str(cores), "--configfile", str(config), "--quiet", "all"]
