"""Fetch and verify the raw files of a dataset."""

from pathlib import Path

from feddep.experiment import stages

with stages.job(snakemake) as config:
    stages.download(config, snakemake.wildcards.dataset, Path(snakemake.output[0]).parent)
