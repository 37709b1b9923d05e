"""Divide a graph among clients."""

from pathlib import Path

from feddep.experiment import stages
from feddep.experiment.plan import PartitionSpec

with stages.job(snakemake) as config:
    stages.partition(config, PartitionSpec(**snakemake.params.spec), Path(snakemake.input.graph), *map(Path, snakemake.output))
