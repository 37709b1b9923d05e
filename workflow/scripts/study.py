"""The tables, page and figure of a study."""

import sys
from pathlib import Path

from feddep.experiment import stages
from feddep.reporting import output, studies

sys.path.insert(0, "")  # the working folder, where studies/ brings kinds of its own

with stages.job(snakemake) as config:
    output.write(
        Path(snakemake.output[0]).parent, studies.contents(config, snakemake.wildcards.study)
    )
