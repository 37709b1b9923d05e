"""What a search chose."""

from pathlib import Path

from feddep.experiment import plan, stages
from feddep.utils.csv_files import write_csv

with stages.job(snakemake) as config:
    write_csv(Path(snakemake.output[0]), plan.choices(config, snakemake.wildcards.study))
