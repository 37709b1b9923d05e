"""Turn raw files into a graph, and describe it."""

from pathlib import Path

from feddep.experiment import stages

with stages.job(snakemake) as config:
    raw = Path(snakemake.input[0]).parent if snakemake.input else None
    stages.prepare(config, snakemake.wildcards.dataset, raw, *map(Path, snakemake.output))
