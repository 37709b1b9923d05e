"""Merge what was computed here into the tables that git keeps."""

from feddep.experiment import data_tables, plan, runs, stages

with stages.job(snakemake) as config:
    print(
        f"{runs.publish(config, plan.all_runs(config))} runs are new in "
        f"{config['records']['directory']}"
    )
    for kind, files in snakemake.params.facts.items():
        data_tables.publish(config, kind, files)
