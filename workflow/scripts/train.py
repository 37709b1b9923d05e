"""Train and test one method on one dataset."""

from pathlib import Path

from feddep.experiment import stages, training_stages

with stages.job(snakemake) as config:
    files, written = dict(snakemake.input), snakemake.output
    training_stages.train(
        config, snakemake.params.run, files, Path(written.run), Path(written.model)
    )
