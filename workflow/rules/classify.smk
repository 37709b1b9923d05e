def classify_input(wildcards):
    files = {prepared.step.stage: f"{OUTPUT}/{prepared.file}" for prepared in prepare_for(run_of(wildcards))}
    return {**problem_files(wildcards), **files}


def classify_flags(wildcards, input):
    made = {stage: input[stage] for stage in PREPARING if stage in input.keys()}
    return problem_flags(run_of(wildcards), input, made)


rule classify:
    """One training run: accuracies, training curve, every byte that crossed a client's border, and the weights."""
    message: "Train {wildcards.framework} on {wildcards.dataset}, {wildcards.scope}, seed {wildcards.seed} ({wildcards.setting})"
    input: unpack(classify_input)
    # The weights are written beside the metrics. They are no output of the rule, as a published record has none.
    output: f"{OUTPUT}/runs/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}/metrics.json"
    log: f"{OUTPUT}/logs/classify/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}.log"
    benchmark: f"{OUTPUT}/benchmarks/classify/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}.tsv"
    params:
        key=lambda wildcards: plan.key(config, run_of(wildcards)),
        run=classify_flags,
        model=lambda wildcards, output: Path(output[0]).with_name("model.safetensors"),
    threads: config["threads"]
    resources:
        mem_mb=4000,
        gpu=gpus(),
    shell: feddep(f"classify --config {CONFIG} {{params.run}} --metrics {{output}} --model {{params.model}}")
