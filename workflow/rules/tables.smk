def findings(wildcards):
    """All that tables, figures and report are made of."""
    runs = [RUNS[run.path] for run in plan.runs(config)]
    return [source(artefact) for artefact in (*runs, *CUTS.values(), *GRAPHS.values())]


rule tables:
    """Every number beside the published one: accuracy, comparisons, costs, partitions, provenance."""
    message: "Write the tables to {params.directory}"
    input: findings
    output:
        multiext(f"{OUTPUT}/tables/accuracy", ".csv", ".md", ".tex"),
        multiext(f"{OUTPUT}/tables/costs", ".csv", ".md"),
        multiext(f"{OUTPUT}/tables/partitions", ".csv", ".md"),
        f"{OUTPUT}/tables/comparisons.csv",
        f"{OUTPUT}/tables/provenance.json",
    log: f"{OUTPUT}/logs/tables.log"
    benchmark: f"{OUTPUT}/benchmarks/tables.tsv"
    params:
        key=plan.findings_key(config, "tables"),
        directory=lambda wildcards, output: Path(output[0]).parent,
    threads: 1
    resources: mem_mb=1000
    shell: feddep(f"tables --config {CONFIG} --output {{params.directory}}")
