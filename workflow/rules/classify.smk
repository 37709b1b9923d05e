def partition_file(wildcards):
    """The partition that a run is trained on; none for a framework that sees the whole graph."""
    whole = wildcards.scope == "whole"
    return [] if whole else f"{OUTPUT}/partitions/{wildcards.dataset}/{wildcards.scope}/seed{wildcards.seed}.safetensors"


def partition_flags(wildcards, input):
    return f"--clients {wildcards.scope[1:]} --partition {input.partition}" if input.get("partition") else ""


rule classify:
    """One training run: accuracies, training curve, every byte that crossed a client's border, and the weights."""
    message: "Train {wildcards.framework} on {wildcards.dataset}, {wildcards.scope}, seed {wildcards.seed} ({wildcards.setting})"
    input:
        graph=f"{OUTPUT}/graphs/{{dataset}}.safetensors",
        split=f"{OUTPUT}/splits/{{dataset}}/seed{{seed}}.safetensors",
        partition=partition_file,
    # The weights are written beside the metrics. They are no output of the rule, as a published record has none.
    output: f"{OUTPUT}/runs/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}/metrics.json"
    log: f"{OUTPUT}/logs/classify/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}.log"
    benchmark: f"{OUTPUT}/benchmarks/classify/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}.tsv"
    params:
        key=lambda w: RUNS[f"{w.setting}/{w.dataset}/{w.scope}/{w.framework}/seed{w.seed}"].key,
        partition=partition_flags,
        model=lambda wildcards, output: Path(output[0]).with_name("model.safetensors"),
    threads: config["threads"]
    resources:
        mem_mb=4000,
        gpu=gpus(),
    shell:
        feddep(
            f"classify --config {CONFIG} --dataset {{wildcards.dataset}} --framework {{wildcards.framework}}"
            " --setting {wildcards.setting} --seed {wildcards.seed} {params.partition}"
            " --graph {input.graph} --split {input.split} --metrics {output} --model {params.model}"
        )
