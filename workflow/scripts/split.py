"""Draw training, validation and test nodes of a graph."""

from pathlib import Path

from feddep.experiment import stages

with stages.job(snakemake) as config:
    stages.split(
        config,
        snakemake.params.dataset,
        snakemake.params.seed,
        Path(snakemake.input.graph),
        Path(snakemake.output[0]),
    )
