rule report:
    """Tables and figures on one page that needs no network."""
    message: "Write the report {output}"
    input: findings
    output: f"{OUTPUT}/report/report.html"
    log: f"{OUTPUT}/logs/report.log"
    benchmark: f"{OUTPUT}/benchmarks/report.tsv"
    params:
        key=plan.findings_key(config, "report"),
        directory=lambda wildcards, output: Path(output[0]).parent,
    threads: 1
    resources: mem_mb=1000
    shell: feddep(f"report --config {CONFIG} --output {{params.directory}}")
