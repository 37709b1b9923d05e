"""A page and its figures as one HTML file."""

from pathlib import Path

from feddep.experiment import stages
from feddep.reporting import html
from feddep.utils.files import write_text

with stages.job(snakemake):
    write_text(snakemake.output[0], html.render(Path(snakemake.input.page)))
