"""Studies that measure runs: a file of the cache for each run, and a page of all of them, by a rule
of the study's name.
"""

PAGE = ["table.csv", "page.md", "figure.svg"]
# Of each kind, what of a run it reads beside its data (stages of steps, and ``model`` for the
# trained weights), and its page's files.
MEASURED = {
    "client_privacy": ([], PAGE),
    "degree_histograms": ([], PAGE),
    "generalisation": (["model"], PAGE),
    "label_distributions": (["model"], PAGE),
    "label_shortcut": (["pretrain", "prototypes", "generator", "model"], PAGE),
    "neighbourhoods": (["generator"], [*PAGE, "missing_neighbours.csv"]),
    "overhead": (["pretrain", "prototypes", "generator"], PAGE),
    "privacy_audit": ([], [*PAGE, "canaries.csv", "properties.csv", "reconstruction.csv"]),
    "quality": (["prototypes"], PAGE),
    "vertical_attacks": ([], PAGE),
}
OWN_CODE = {
    name: study["kind"]
    for name, study in config["studies"].items()
    if plan.has_code(study["kind"])
}


def measured(study):
    """What is measured of a study's runs, a file each."""
    runs = plan.study_runs(config, study)
    RUNS.update((run.key, run) for run in runs)
    return [f"{CACHE}/{study}/{run.key}.json" for run in runs]


def read_of(wildcards):
    """What a run is measured from."""
    run, (read, _) = RUNS[wildcards.key], MEASURED[OWN_CODE[wildcards.study]]
    files = {**task_files(run), **step_files(run, read, wildcards.study)}
    return {**files, "model": run_files(run)["model"]} if "model" in read else files


rule measure:
    """One run, measured by the code of a study."""
    message:
        "Measure {wildcards.study} of {params.run.method} on {params.run.place}, "
        "seed {params.run.seed}"
    input: unpack(read_of)
    output: f"{CACHE}/{{study}}/{{key}}.json"
    log: f"{CACHE}/logs/{{study}}/{{key}}.log"
    benchmark: f"{CACHE}/benchmarks/{{study}}/{{key}}.tsv"
    wildcard_constraints:
        study="|".join(OWN_CODE) or "none",
    params:
        run=lambda wildcards: RUNS[wildcards.key],
    threads: config["threads"]
    resources:
        mem_mb=config["memory"]["training"],
        gpu=gpus(),
    script: "scripts/measure.py"


for study, kind in OWN_CODE.items():

    rule:
        name: study
        message: "Write {output[0]}"
        input: measured(study)
        output: multiext(f"{OUTPUT}/{study}/", *MEASURED[kind][1])
        log: f"{CACHE}/logs/{study}.log"
        params:
            key=keys_of(plan.study_runs(config, study)),
        resources:
            mem_mb=config["memory"]["tables"],
        script: "scripts/page.py"
