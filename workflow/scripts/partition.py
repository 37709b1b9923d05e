"""Divide a graph among clients."""

from pathlib import Path

from feddep.experiment import stages

with stages.job(snakemake) as config:
    stages.partition(
        config, snakemake.params.spec, Path(snakemake.input.graph), *map(Path, snakemake.output)
    )
