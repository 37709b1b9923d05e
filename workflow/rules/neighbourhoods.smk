"""Neighbourhoods that NeighGen mends beside the true ones. On demand, as it needs generated neighbours, which no record holds."""

from feddep.provenance import code_fingerprint
from feddep.reporting import measured

NEIGHBOURHOODS = ("distances", "counts")


def neighbourhoods_input(wildcards):
    made = {each.step.stage: f"{OUTPUT}/{each.file}" for each in prepare_for(run_of(wildcards))}
    return {**problem_files(wildcards), **made}


def neighbourhoods_key(wildcards):
    run = {"run": plan.key(config, run_of(wildcards)), "code": code_fingerprint("feddep.stages.neighbourhoods")}
    return plan.digest(run)


rule neighbourhoods:
    """The mended neighbourhoods of one run."""
    message: "Measure what {wildcards.framework} mends on {wildcards.dataset}, {wildcards.scope}, seed {wildcards.seed}"
    input: unpack(neighbourhoods_input)
    output:
        [
            f"{OUTPUT}/neighbourhoods/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}/{name}.csv"
            for name in NEIGHBOURHOODS
        ],
    log: f"{OUTPUT}/logs/neighbourhoods/{{setting}}/{{dataset}}/{{scope}}/{{framework}}/seed{{seed}}.log"
    params:
        key=neighbourhoods_key,
        run=classify_flags,
        directory=lambda wildcards, output: Path(output[0]).parent,
    threads: config["threads"]
    resources: mem_mb=6000
    shell: feddep(f"neighbourhoods --config {CONFIG} {{params.run}} --output {{params.directory}}")


rule neighbourhoods_table:
    """The neighbourhoods of all runs that the key neighbourhoods names, beside FedSage's."""
    message: "Write {output}"
    input:
        [
            f"{OUTPUT}/{measured.of_run('neighbourhoods', run, name)}"
            for run in plan.measured_runs(config, "neighbourhoods")
            for name in NEIGHBOURHOODS
        ],
    output:
        multiext(f"{OUTPUT}/tables/neighbourhoods", ".csv", ".md"),
        f"{OUTPUT}/tables/missing_neighbours.csv",
        multiext(f"{OUTPUT}/figures/missing_neighbours", ".svg", ".png"),
    log: f"{OUTPUT}/logs/neighbourhoods.log"
    params: key=plan.digest({"code": code_fingerprint("feddep.stages.neighbourhoods_table")})
    shell: feddep(f"neighbourhoods_table --config {CONFIG} --output {OUTPUT}")
