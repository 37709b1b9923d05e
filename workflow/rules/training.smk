"""The steps of runs, and the runs.  Steps are named by what they depend on, so that runs can share them."""


rule step:
    """What a method computes before its classifier: local GNNs (pretrain), prototypes, or generators and what they mend."""
    message: "Compute {wildcards.stage} on {wildcards.dataset}, {wildcards.scope}, seed {wildcards.seed}"
    input: unpack(step_input)
    output:
        tensors=f"{OUTPUT}/steps/{STEP}.safetensors",
        facts=f"{OUTPUT}/steps/{STEP}.json",
    log: f"{OUTPUT}/logs/steps/{STEP}.log"
    benchmark: f"{OUTPUT}/benchmarks/steps/{STEP}.tsv"
    wildcard_constraints:
        stage="pretrain|prototypes|generator",
    params:
        key=lambda wildcards: step_of(wildcards).key,
        task=lambda wildcards, input: task_flags(step_of(wildcards).run, input, step_of(wildcards).needs),
    threads: config["threads"]
    resources:
        mem_mb=config["memory"]["training"],
        gpu=gpus(),
    shell: feddep("step --stage {wildcards.stage:q} {params.task} --key {params.key} --output {output.tensors:q}")


rule classify:
    """One training run: accuracies, training curve, every byte that crossed a client's boundary, and the weights."""
    message: "Train {wildcards.method} on {wildcards.dataset}, {wildcards.scope}, seed {wildcards.seed} ({wildcards.setting})"
    input: unpack(classify_input)
    output:
        metrics=f"{OUTPUT}/runs/{RUN}/metrics.json",
        model=f"{OUTPUT}/runs/{RUN}/model.safetensors",
    log: f"{OUTPUT}/logs/classify/{RUN}.log"
    benchmark: f"{OUTPUT}/benchmarks/classify/{RUN}.tsv"
    params:
        key=lambda wildcards: keys.run_key(config, run_of(wildcards)),
        task=lambda wildcards, input: task_flags(run_of(wildcards), input, ("pretrain", "prototypes", "generator")),
    threads: config["threads"]
    resources:
        mem_mb=config["memory"]["training"],
        gpu=gpus(),
    shell: feddep("classify {params.task} --key {params.key} --metrics {output.metrics:q} --model {output.model:q}")


localrules:
    publish,


rule publish:
    """Copy every result of the configuration that has no record yet to the records that git keeps."""
    message: "Publish the results in {config[records][directory]}"
    input:
        [source(artifact) for artifact in (*RUNS.values(), *PARTITIONS.values(), *GRAPHS.values())],
    log: f"{OUTPUT}/logs/publish.log"
    threads: 1
    shell: feddep("publish")
