"""The steps of runs, and the runs.  Runs share steps, which are named by what they depend on.  Jobs
make those that several batches read; a training makes the others, with the same files.

A key says all that a file depends on.  So the run in a job's params is an object, which Snakemake
hands on but does not compare: another run that shares the step makes it no other step.
"""


def needed_files(planned):
    """The results of the steps that a step reads, by stage."""
    return step_files(planned.run, planned.step.needs)


rule pretrain:
    """Local GNNs, computed before the classifier; the next two rules go on from them."""
    message:
        "Compute {rule} on {wildcards.dataset} for {params.planned.run.method}, "
        "M={params.planned.run.clients}, seed {params.planned.run.seed}"
    input:
        unpack(lambda wildcards: task_files(STEPS[wildcards.key].run)),
        unpack(lambda wildcards: needed_files(STEPS[wildcards.key])),
    output: multiext(f"{CACHE}/steps/pretrain/{{dataset}}-{{key}}", ".safetensors", ".json")
    log: f"{CACHE}/logs/steps/pretrain/{{dataset}}-{{key}}.log"
    benchmark: f"{CACHE}/benchmarks/pretrain/{{dataset}}-{{key}}.tsv"
    params:
        planned=lambda wildcards: STEPS[wildcards.key],
    threads: config["threads"]
    resources:
        mem_mb=config["memory"]["training"],
        gpu=gpus(),
    script: "../scripts/step.py"


use rule pretrain as prototypes with:
    output: multiext(f"{CACHE}/steps/prototypes/{{dataset}}-{{key}}", ".safetensors", ".json")
    log: f"{CACHE}/logs/steps/prototypes/{{dataset}}-{{key}}.log"
    benchmark: f"{CACHE}/benchmarks/prototypes/{{dataset}}-{{key}}.tsv"


use rule pretrain as generator with:
    output: multiext(f"{CACHE}/steps/generator/{{dataset}}-{{key}}", ".safetensors", ".json")
    log: f"{CACHE}/logs/steps/generator/{{dataset}}-{{key}}.log"
    benchmark: f"{CACHE}/benchmarks/generator/{{dataset}}-{{key}}.tsv"


rule train:
    """One training run: its row, curves and weights, and all bytes that clients sent or got."""
    message:
        "Train {params.run.method} on {params.run.place}, M={params.run.clients}, "
        "seed {params.run.seed} ({params.run.setting})"
    input: unpack(lambda wildcards: input_files(RUNS[wildcards.key]))
    output:
        run=f"{CACHE}/runs/{{key}}.json",
        model=f"{CACHE}/models/{{key}}.safetensors",
    log: f"{CACHE}/logs/train/{{key}}.log"
    benchmark: f"{CACHE}/benchmarks/train/{{key}}.tsv"
    params:
        run=lambda wildcards: RUNS[wildcards.key],
        members=lambda wildcards: [member_of(RUNS[wildcards.key])],
    threads: config["threads"]
    resources:
        mem_mb=config["memory"]["training"],
        gpu=gpus(),
    script: "../scripts/batch.py"


def member_of(run):
    """The run, what it reads, and where its result and model go."""
    return (run, {**task_files(run), **step_files(run)}, *map(Path, run_files(run).values()))


def runs_of(wildcards):
    """The runs of a batch."""
    return [RUNS[key] for key in BATCHES[wildcards.key]]


rule batch:
    """Several runs on one graph in one process, with the files of `train`; a kill repeats none."""
    message: "Train {params.number} runs on {wildcards.dataset}"
    input:
        lambda wildcards: list(
            dict.fromkeys(file for run in runs_of(wildcards) for file in input_files(run).values())
        ),
    output:
        touch(f"{CACHE}/batches/{{dataset}}-{{key}}"),
    log: f"{CACHE}/logs/batches/{{dataset}}-{{key}}.log"
    benchmark: f"{CACHE}/benchmarks/batches/{{dataset}}-{{key}}.tsv"
    params:
        members=lambda wildcards: list(map(member_of, runs_of(wildcards))),
        number=lambda wildcards: len(BATCHES[wildcards.key]),
    threads: config["threads"]
    resources:
        mem_mb=config["memory"]["training"],
        gpu=gpus(),
    script: "../scripts/batch.py"


localrules:
    publish,


rule publish:
    """Merge the runs that were trained here into the tables that git keeps.  Asked for by hand."""
    message: "Publish {params.runs} runs in {config[records][directory]}"
    input:
        lambda wildcards: results_of(plan.runs(config)),
        lambda wildcards: results_of_studies(),
        statistics_files(),
    params:
        runs=lambda wildcards: len(MISSING),
        facts={kind: facts_of(kind) for kind in ("graphs", "partitions")},
    script: "../scripts/publish.py"
