def quality_input(wildcards):
    prepared = [each for each in prepare_for(run_of(wildcards)) if each.step.stage != "generator"]
    return {**problem_files(wildcards), **{each.step.stage: f"{OUTPUT}/{each.file}" for each in prepared}}


rule quality:
    """What a run's generators generate beside guesses that need no training."""
    message: "Compare what {wildcards.framework} generates on {wildcards.dataset}, {wildcards.scope}, seed {wildcards.seed}"
    input: unpack(quality_input)
    output: f"{OUTPUT}/quality/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}.csv"
    log: f"{OUTPUT}/logs/quality/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}.log"
    params:
        key=lambda wildcards: plan.key(config, run_of(wildcards)),
        run=classify_flags,
    threads: config["threads"]
    resources:
        mem_mb=4000,
        gpu=gpus(),
    shell: feddep(f"quality --config {CONFIG} {{params.run}} --output {{output}}")
