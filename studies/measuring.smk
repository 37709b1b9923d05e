"""What studies that measure runs share: how a run is measured, and names for what pages are made of."""

# Of each kind, what of a run it reads beside its data (stages of steps, and ``model`` for the trained weights), and its page's files.
MEASURED = {}


def measured(study):
    """What is measured of a study's runs, a file each."""
    runs = plan.study_runs(config, study)
    RUNS.update((keys.run_key(config, run), run) for run in runs)
    return [f"{CACHE}/{study}/{keys.run_key(config, run)}.json" for run in runs]


def read_of(wildcards):
    """What a run is measured from."""
    run, read = RUNS[wildcards.key], MEASURED[config["studies"][wildcards.study]["kind"]]["reads"]
    files = {**task_files(run), **step_files(run, read)}
    return {**files, "model": run_files(run)["model"]} if "model" in read else files


rule measure:
    """One run, measured by the code of a study."""
    message: "Measure {wildcards.study} of {params.run.method} on {params.run.dataset}, seed {params.run.seed}"
    input: unpack(read_of)
    output: f"{CACHE}/{{study}}/{{key}}.json"
    log: f"{CACHE}/logs/{{study}}/{{key}}.log"
    benchmark: f"{CACHE}/benchmarks/{{study}}/{{key}}.tsv"
    wildcard_constraints:
        study="|".join(name for name, study in config["studies"].items() if plan.has_code(study["kind"])) or "none",
    params:
        run=lambda wildcards: RUNS[wildcards.key],
    threads: config["threads"]
    resources:
        mem_mb=config["memory"]["training"],
        gpu=gpus(),
    script: "scripts/measure.py"
