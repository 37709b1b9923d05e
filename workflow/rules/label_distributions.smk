"""Labels that clients hold and that models predict. On demand, as it needs trained models, which no record holds."""

from feddep.provenance import code_fingerprint
from feddep.reporting import measured


def label_distributions_key(wildcards):
    run = {"run": plan.key(config, run_of(wildcards)), "code": code_fingerprint("feddep.stages.label_distributions")}
    return plan.digest(run)


rule label_distributions:
    """The labels of one run."""
    message: "Count labels on {wildcards.dataset}, {wildcards.scope}, as {wildcards.framework} predicts them, seed {wildcards.seed}"
    input:
        unpack(problem_files),
        metrics=rules.classify.output[0],  # beside which the weights are
    output: f"{OUTPUT}/label_distributions/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}.csv"
    log: f"{OUTPUT}/logs/label_distributions/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}.log"
    params:
        key=label_distributions_key,
        run=lambda wildcards, input: problem_flags(run_of(wildcards), input, {}),
        model=lambda wildcards, input: Path(input.metrics).with_name("model.safetensors"),
    threads: config["threads"]
    resources: mem_mb=4000
    shell: feddep(f"label_distributions --config {CONFIG} {{params.run}} --model {{params.model}} --output {{output}}")


rule label_distributions_table:
    """The labels of all runs that the key label_distributions names."""
    message: "Write {output}"
    input:
        [f"{OUTPUT}/{measured.of_run('label_distributions', run)}" for run in plan.measured_runs(config, "label_distributions")],
    output:
        multiext(f"{OUTPUT}/tables/label_distributions", ".csv", ".md"),
        multiext(f"{OUTPUT}/figures/label_distributions", ".svg", ".png"),
    log: f"{OUTPUT}/logs/label_distributions.log"
    params: key=plan.digest({"code": code_fingerprint("feddep.stages.label_distributions_table")})
    shell: feddep(f"label_distributions_table --config {CONFIG} --output {OUTPUT}")
