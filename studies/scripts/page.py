"""Make the page of a study from what was measured of its runs."""

import sys
from pathlib import Path

from feddep.experiment import stages
from feddep.reporting import output

sys.path.insert(0, "")  # the working folder, where studies/ is
from studies import measuring

with stages.job(snakemake) as config:
    kind = config["studies"][snakemake.rule]["kind"]
    tables = [measuring.read_measured(Path(file)) for file in snakemake.input]
    output.write(Path(snakemake.output[0]).parent, measuring.page_of(kind, tables))
