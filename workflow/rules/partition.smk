rule partition:
    """Which client owns each node, and what that division loses."""
    message: "Divide {wildcards.dataset} among {wildcards.clients} clients, seed {wildcards.seed}"
    input: f"{OUTPUT}/graphs/{{dataset}}.safetensors"
    output:
        partition=f"{OUTPUT}/partitions/{{dataset}}/m{{clients}}/seed{{seed}}.safetensors",
        statistics=f"{OUTPUT}/partitions/{{dataset}}/m{{clients}}/seed{{seed}}.json",
    log: f"{OUTPUT}/logs/partition/{{dataset}}/m{{clients}}/seed{{seed}}.log"
    benchmark: f"{OUTPUT}/benchmarks/partition/{{dataset}}/m{{clients}}/seed{{seed}}.tsv"
    params:
        key=lambda wildcards: plan.partition_key(
            config, plan.Cut(wildcards.dataset, int(wildcards.clients), int(wildcards.seed))
        ),
    threads: 1
    resources: mem_mb=2000
    shell:
        feddep(
            f"partition --config {CONFIG} --dataset {{wildcards.dataset}} --clients {{wildcards.clients}}"
            " --seed {wildcards.seed} --graph {input} --output {output.partition} --statistics {output.statistics}"
        )
