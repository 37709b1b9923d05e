rule download:
    """Raw files of a public dataset, from the first source that has them, each verified by its checksum."""
    message: "Download {wildcards.dataset}"
    output: f"{OUTPUT}/raw/{{dataset}}/MANIFEST.json"
    log: f"{OUTPUT}/logs/download/{{dataset}}.log"
    benchmark: f"{OUTPUT}/benchmarks/download/{{dataset}}.tsv"
    params: key=lambda wildcards: plan.data_fingerprint(config, wildcards.dataset)
    threads: 1
    resources: mem_mb=1000
    shell: feddep(f"download --config {CONFIG} --dataset {{wildcards.dataset}} --output {OUTPUT}/raw/{{wildcards.dataset}}")
