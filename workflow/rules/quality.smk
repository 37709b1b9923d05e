"""What runs' generators generate beside guesses that need no training. On demand, as no record holds it."""

from feddep.provenance import code_fingerprint
from feddep.reporting import measured


def quality_input(wildcards):
    prepared = [each for each in prepare_for(run_of(wildcards)) if each.step.stage != "generator"]
    return {**problem_files(wildcards), **{each.step.stage: f"{OUTPUT}/{each.file}" for each in prepared}}


def quality_key(wildcards):
    run = {"run": plan.key(config, run_of(wildcards)), "code": code_fingerprint("feddep.stages.quality")}
    return plan.digest(run)


rule quality:
    """The generators of one run."""
    message: "Compare what {wildcards.framework} generates on {wildcards.dataset}, {wildcards.scope}, seed {wildcards.seed}"
    input: unpack(quality_input)
    output: f"{OUTPUT}/quality/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}.csv"
    log: f"{OUTPUT}/logs/quality/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}.log"
    params:
        key=quality_key,
        run=classify_flags,
    threads: config["threads"]
    resources:
        mem_mb=4000,
        gpu=gpus(),
    shell: feddep(f"quality --config {CONFIG} {{params.run}} --output {{output}}")


rule quality_table:
    """The generators of all runs that the key quality names."""
    message: "Write {output}"
    input: [f"{OUTPUT}/{measured.of_run('quality', run)}" for run in plan.measured_runs(config, "quality")]
    output: multiext(f"{OUTPUT}/tables/quality", ".csv", ".md")
    log: f"{OUTPUT}/logs/quality.log"
    params:
        key=plan.digest({"code": code_fingerprint("feddep.stages.quality_table")}),
        directory=lambda wildcards, output: Path(output[0]).parent,
    shell: feddep(f"quality_table --config {CONFIG} --output {{params.directory}}")
