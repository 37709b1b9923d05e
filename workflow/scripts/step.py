"""Compute one step of a run: pretrain, prototypes or generator."""

from pathlib import Path

from feddep.experiment import stages
from feddep.experiment.plan import Run

with stages.job(snakemake) as config:
    stages.step(config, Run(**snakemake.params.run), snakemake.wildcards.stage, dict(snakemake.input), Path(snakemake.output[0]))
