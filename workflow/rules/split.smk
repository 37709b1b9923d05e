rule split:
    """Which nodes train, validate and test; the same for every framework and number of clients."""
    message: "Split the nodes of {wildcards.dataset}, seed {wildcards.seed}"
    input: f"{OUTPUT}/graphs/{{dataset}}.safetensors"
    output: f"{OUTPUT}/splits/{{dataset}}/seed{{seed}}.safetensors"
    log: f"{OUTPUT}/logs/split/{{dataset}}/seed{{seed}}.log"
    benchmark: f"{OUTPUT}/benchmarks/split/{{dataset}}/seed{{seed}}.tsv"
    params: key=lambda wildcards: plan.split_key(config, wildcards.dataset, int(wildcards.seed))
    threads: 1
    resources: mem_mb=1000
    shell:
        feddep(
            f"split --config {CONFIG} --dataset {{wildcards.dataset}} --seed {{wildcards.seed}}"
            " --graph {input} --output {output}"
        )
