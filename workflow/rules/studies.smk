"""Studies beside the main table: a rule for each, study_NAME, and one for all of them."""

from feddep.reporting import studies as kinds

try:
    for study, options in config["studies"].items():
        kinds.module_name(study, options["kind"])
except FeddepError as error:
    sys.exit(f"feddep: {error}")


def study_key(study):
    return lambda wildcards: plan.study_key(config, study)


def study_files(study):
    """What is made of a study. Some kinds write further tables beside table.csv."""
    names = ("table.csv", "table.md", "figure.svg", "figure.png", "provenance.json")
    return [f"{OUTPUT}/studies/{study}/{name}" for name in names]


localrules: studies


for study in config["studies"]:
    rule:
        """The table, page and figure of a study."""
        name: f"study_{study}"
        message: f"Write the study {study} to {{params.directory}}"
        input: [source(RUNS[run.path]) for run in plan.study_runs(config, study)]
        output: study_files(study)
        log: f"{OUTPUT}/logs/studies/{study}.log"
        benchmark: f"{OUTPUT}/benchmarks/studies/{study}.tsv"
        params:
            key=study_key(study),
            study=study,  # the command below is put together when the job runs, after the loop
            directory=f"{OUTPUT}/studies/{study}",
        threads: 1
        resources: mem_mb=1000
        shell: feddep(f"study --config {CONFIG} --study {{params.study}} --output {{params.directory}}")


rule studies:
    """All studies."""
    message: "All studies are made: see {OUTPUT}/studies"
    input: [file for study in config["studies"] for file in study_files(study)]
