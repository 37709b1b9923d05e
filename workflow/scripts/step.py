"""Compute one step of a run: pretrain, prototypes or generator."""

from pathlib import Path

from feddep.experiment import stages, training_stages

with stages.job(snakemake) as config:
    training_stages.step(
        config, snakemake.params.planned, dict(snakemake.input), Path(snakemake.output[0])
    )
