"""Train and test one run, or several on one graph."""

from feddep.experiment import stages, training_stages

with stages.job(snakemake) as config:
    training_stages.batch(config, snakemake.params.members)
