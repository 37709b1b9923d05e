"""Measure one run with the code of a study."""

import sys
from pathlib import Path

from feddep.experiment import stages

sys.path.insert(0, "")  # the working folder, where studies/ is
from studies import measuring

with stages.job(snakemake) as config:
    study, run, output = snakemake.wildcards.study, snakemake.params.run, Path(snakemake.output[0])
    measuring.measure_run(config, study, run, dict(snakemake.input), output)
