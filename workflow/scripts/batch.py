"""Train and test several runs on one graph."""

from pathlib import Path

from feddep.experiment import stages

with stages.job(snakemake) as config:
    stages.batch(config, snakemake.params.members, Path(snakemake.output[0]))
