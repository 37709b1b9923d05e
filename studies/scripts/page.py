"""Make the page of a study from what was measured of its runs."""

import sys
from pathlib import Path

from feddep.experiment import stages

sys.path.insert(0, "")  # the working folder, where studies/ is
from studies import measuring

with stages.job(snakemake) as config:
    kind = config["studies"][snakemake.rule]["kind"]
    measuring.write_page(kind, map(Path, snakemake.input), Path(snakemake.output[0]).parent)
