"""Divide a graph among clients."""

from pathlib import Path

from feddep.experiment import stages

with stages.job(snakemake):
    stages.partition(
        snakemake.params.run, Path(snakemake.input.graph), *map(Path, snakemake.output)
    )
