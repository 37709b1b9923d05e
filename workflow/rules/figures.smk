rule figures:
    """Accuracy beside the papers', training curves, partitions."""
    message: "Draw the figures in {params.directory}"
    input: findings
    output:
        multiext(f"{OUTPUT}/figures/accuracy", ".svg", ".png"),
        multiext(f"{OUTPUT}/figures/curves", ".svg", ".png"),
        multiext(f"{OUTPUT}/figures/partitions", ".svg", ".png"),
    log: f"{OUTPUT}/logs/figures.log"
    benchmark: f"{OUTPUT}/benchmarks/figures.tsv"
    params:
        key=plan.findings_key(config, "figures"),
        directory=lambda wildcards, output: Path(output[0]).parent,
    threads: 1
    resources: mem_mb=1000
    shell: feddep(f"figures --config {CONFIG} --output {{params.directory}}")
