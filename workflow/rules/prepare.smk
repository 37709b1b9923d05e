def raw_files(wildcards):
    """The raw files of a dataset; a synthetic graph is made from nothing."""
    synthetic = "synthetic" in config["datasets"][wildcards.dataset]
    return [] if synthetic else f"{OUTPUT}/raw/{wildcards.dataset}/MANIFEST.json"


rule prepare:
    """A dataset's graph, checked against the fingerprint in the registry, and its statistics."""
    message: "Prepare {wildcards.dataset}"
    input: raw_files
    output:
        graph=f"{OUTPUT}/graphs/{{dataset}}.safetensors",
        statistics=f"{OUTPUT}/graphs/{{dataset}}.json",
    log: f"{OUTPUT}/logs/prepare/{{dataset}}.log"
    benchmark: f"{OUTPUT}/benchmarks/prepare/{{dataset}}.tsv"
    params:
        key=lambda wildcards: GRAPHS[wildcards.dataset].key,
        raw=lambda wildcards, input: f"--raw {Path(input[0]).parent}" if input else "",
    threads: 1
    resources: mem_mb=2000
    shell:
        feddep(
            f"prepare --config {CONFIG} --dataset {{wildcards.dataset}} {{params.raw}}"
            " --graph {output.graph} --statistics {output.statistics}"
        )
