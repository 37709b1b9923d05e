"""Train and test several runs on one graph."""

from pathlib import Path

from feddep.experiment import stages, training_stages

with stages.job(snakemake) as config:
    training_stages.batch(config, snakemake.params.members, Path(snakemake.output[0]))
