"""The tables, page and figure of a study."""

from pathlib import Path

from feddep.experiment import stages
from feddep.reporting import output, studies

with stages.job(snakemake) as config:
    output.write(
        Path(snakemake.output[0]).parent, studies.contents(config, snakemake.wildcards.study)
    )
