"""Draw training, validation and test nodes of a graph."""

from pathlib import Path

from feddep.experiment import stages

with stages.job(snakemake):
    stages.split(snakemake.params.run, Path(snakemake.input.graph), Path(snakemake.output[0]))
