"""The main tables: every number beside the published one, comparisons, costs and partitions,
with figures and a page.
"""

from pathlib import Path

from feddep.experiment import stages
from feddep.reporting import main, output

with stages.job(snakemake) as config:
    output.write(Path(snakemake.output[0]).parent, main.contents(config, snakemake.params.facts))
