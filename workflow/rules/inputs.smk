"""What rules read, and the flags that tell their stages so."""

from feddep.config.loading import SOURCES, entry, main_tables
from feddep.experiment import integrity
from feddep.experiment.fingerprint import code_fingerprint
from feddep.measurements import CLASSIFIER, MEASUREMENTS
from feddep.methods import registry
from feddep.reporting import agreement, page_keys, studies

# Runs and steps are named alike everywhere: in results, logs and benchmarks.
RUN = "{setting}/{dataset}/{scope}/{method}/seed{seed}"
STEP = "{stage}/{dataset}/{scope}/{digest}/seed{seed}"
STUDY = f"{OUTPUT}/studies/{{study}}"
SETTINGS = list(main_tables(config))
# The runs that no record stands in for, with their keys, and their steps by file.
UNPUBLISHED = {run: artifact.key for run, artifact in zip(plan.all_runs(config), RUNS.values()) if artifact.source == artifact.result}
RECORDED = {str(artifact.record) for artifact in RUNS.values() if artifact.source == artifact.record}
BEFORE_RECORDS = {"download", "prepare", "split", "partition", "step", "classify"}  # the rules that records stand in for
STEPS = {str(job.file): job for run in UNPUBLISHED for job in step_jobs(config, run)}
RANKS = [f"{OUTPUT}/figures/ranks_{setting}.svg" for setting in main_tables(config)]
AUDITED = {part: config["audit"][part] for part in ("membership", "canaries", "properties", "reconstruction")}


@cache
def source(artifact):
    """The file that tables read a result from: its record, whose key says all, so that its age does not matter; or the result."""
    return ancient(str(artifact.record)) if artifact.source == artifact.record else str(artifact.result)


def run_of(wildcards):
    """The run that a file belongs to. It need not be planned: whatever can be spelled can be made."""
    clients = None if wildcards.scope == "whole" else int(wildcards.scope[1:])
    run = plan.Run(wildcards.setting, wildcards.dataset, clients, wildcards.method, int(wildcards.seed))
    plan.check(run)
    return run


@cache
def remake_damaged():
    """Have what is damaged, or has another key than it should have, made again wherever it is needed.

    Called by input functions, as the DAG that learns of it is not there before.
    """
    expected = integrity.expected_keys(config, UNPUBLISHED, STEPS.values()) | page_keys.shown_keys(config)
    for file, sentence in integrity.damaged(OUTPUT, expected):
        print(f"feddep: {sentence}; made again where it is needed", file=sys.stderr)
        workflow.dag.forcefiles.add(str(file))
    explain_forced()


def explain_forced():
    """Say so where --forcerun names a rule that nothing needs, as records stand in for what it leads to."""
    forced = sorted(BEFORE_RECORDS & {str(rule) for rule in workflow.dag_settings.forcerun})
    if forced and RECORDED:
        print(
            f"feddep: records stand in for {len(RECORDED)} of {len(RUNS)} runs, for which --forcerun {' '.join(forced)} makes nothing; "
            "to train them, add --config 'records={use: false}'",
            file=sys.stderr,
        )


def task_files(run):
    """What every stage of a run reads: graph, split and, for a method that works on subgraphs, partition."""
    remake_damaged()
    dataset = variants.base(run.dataset)
    files = {
        "graph": f"{OUTPUT}/graphs/{dataset}.safetensors",
        "split": f"{OUTPUT}/splits/{dataset}/seed{run.seed}.safetensors",
    }
    if run.partition is not None:
        files["partition"] = f"{OUTPUT}/partitions/{run.partition.path}.safetensors"
    return files


def step_files(run, stages=("pretrain", "prototypes", "generator")):
    """The results of a run's steps, by stage; rule ``step`` finds them in ``STEPS``, also those of a run that is not planned."""
    jobs = step_jobs(config, run)
    STEPS.update((str(job.file), job) for job in jobs)
    return {job.step.stage: f"{OUTPUT}/{job.file}" for job in jobs if job.step.stage in stages}


def task_flags(run, input, steps=()):
    """The flags by which every stage of a run is told what to work on; ``steps`` are stages whose results it reads."""
    values = {"dataset": run.dataset, "method": run.method, "setting": run.setting, "seed": run.seed, "clients": run.clients}
    values |= {name: input.get(name) for name in ("graph", "split", "partition")}
    given = [f"--{name} {shlex.quote(str(value))}" for name, value in values.items() if value is not None]
    return " ".join([*given, *(f"--step {shlex.quote(f'{stage}={input[stage]}')}" for stage in steps if stage in input.keys())])


@exit_on_user_error()
def raw_files(wildcards):
    """The raw files of a public dataset.  A graph of one's own is known by the key, so that its age and place do not matter."""
    remake_damaged()
    keys.graph_key(config, wildcards.dataset)  # a sentence where the files of one's own are not there
    made = any(source in entry(config, "datasets", wildcards.dataset) for source in SOURCES)
    return {} if made else {"raw": f"{OUTPUT}/raw/{wildcards.dataset}/MANIFEST.json"}


def partition_spec(wildcards):
    return plan.PartitionSpec(wildcards.dataset, int(wildcards.clients), int(wildcards.seed))


def step_of(wildcards):
    """The step that a file belongs to: that of a planned run, or of one that was asked for by its path."""
    file = f"steps/{STEP.format(**wildcards)}.safetensors"
    if file not in STEPS:
        raise ConfigError(f"{OUTPUT}/{file} is a step of no run that is planned or asked for; ask for the run itself")
    return STEPS[file]


@exit_on_user_error()
def classify_input(wildcards):
    run = run_of(wildcards)
    return {**task_files(run), **step_files(run)}


@exit_on_user_error()
def step_input(wildcards):
    job = step_of(wildcards)
    return {**task_files(job.run), **{stage: f"{OUTPUT}/{file}" for stage, file in job.needs.items()}}


@exit_on_user_error()
def findings(wildcards):
    """All that tables, figures and report are made of."""
    remake_damaged()
    runs = [RUNS[run.path] for run in plan.runs(config)]
    artifacts = (*runs, *PARTITIONS.values(), *GRAPHS.values())
    return [source(artifact) for artifact in artifacts]


@exit_on_user_error()
def published_input(wildcards):
    """The runs whose accuracy a paper prints."""
    remake_damaged()
    return [source(RUNS[run.path]) for run in agreement.runs_of(config)]


@exit_on_user_error()
def study_input(wildcards):
    remake_damaged()
    return [source(RUNS[run.path]) for run in plan.study_runs(config, wildcards.study)]


def measured_stages(wildcards):
    """The steps of a run whose results a measurement reads."""
    method = registry.configured(keys.specification(config, run_of(wildcards))["method"])
    return MEASUREMENTS[wildcards.kind].stages(*method)


@exit_on_user_error()
def measure_input(wildcards):
    run = run_of(wildcards)
    model = {"model": f"{OUTPUT}/runs/{run.path}/model.safetensors"} if CLASSIFIER in MEASUREMENTS[wildcards.kind].needs else {}
    return {**task_files(run), **step_files(run, measured_stages(wildcards)), **model}


@exit_on_user_error()
def measure_flags(wildcards, input):
    run = run_of(wildcards)
    model = f" --model {shlex.quote(str(input.model))}" if "model" in input.keys() else ""
    return f"{task_flags(run, input, measured_stages(wildcards))}{model} --key {keys.run_key(config, run)}"


def measured(kind):
    """The measurements that a page is made of, and the page's files."""
    runs = [f"{OUTPUT}/{MEASUREMENTS[kind].file(run)}" for run in MEASUREMENTS[kind].runs(config)]
    return runs, [f"{OUTPUT}/{file}" for file in (*MEASUREMENTS[kind].files, f"tables/{kind}.sha256")]


def page_key(kind):
    """The key of the page of a measurement, beside those of the measurements that it is made of."""
    return keys.digest({"code": code_fingerprint("feddep.stages.measurement_table", f"feddep.measurements.{kind}")})


def page_flags(flag, files, folder="."):
    """The flags of the files that a page is made of, and of the folder of results that it is put in."""
    place = os.path.normpath(f"{OUTPUT}/{folder}")
    return " ".join([*(f"--{flag} {shlex.quote(str(file))}" for file in files), f"--output {shlex.quote(place)}"])


@exit_on_user_error()
def privacy_files(wildcards):
    """Graphs, splits and partitions of the first seed, by what the stage calls them."""
    remake_damaged()
    seed = config["seeds"][0]
    specs = [spec for spec in plan.partitions(config) if spec.seed == seed]
    return {
        "graph": [f"{OUTPUT}/graphs/{name}.safetensors" for name in plan.datasets(config)],
        "split": [f"{OUTPUT}/splits/{name}/seed{seed}.safetensors" for name in plan.datasets(config)],
        "partition": [f"{OUTPUT}/partitions/{spec.path}.safetensors" for spec in specs],
    }


@exit_on_user_error()
def privacy_flags(wildcards, input):
    names = plan.datasets(config)
    of_partitions = [f"{spec.dataset}/m{spec.clients}" for spec in plan.partitions(config) if spec.seed == config["seeds"][0]]
    named = {"graph": names, "split": names, "partition": of_partitions}
    pairs = [(flag, name, file) for flag in named for name, file in zip(named[flag], input[flag])]
    return " ".join(f"--{flag} {shlex.quote(f'{name}={file}')}" for flag, name, file in pairs)


def audit_run(method):
    """The run that is audited: of the first table's setting, a few rounds, and the first seed."""
    options, datasets = config["audit"], plan.datasets(config)
    dataset = options["dataset"] or ("cora" if "cora" in datasets else datasets[0])
    clients = options["clients"] or (5 if 5 in config["clients"] else config["clients"][0])
    setting = f"{plan.runs(config)[0].setting},rounds={options['rounds']}"
    return plan.Run(setting, dataset, clients, method, config["seeds"][0])


@exit_on_user_error()
def audit_key(wildcards):
    run = audit_run(getattr(wildcards, "method", "feddep"))
    return keys.digest({"run": keys.run_key(config, run), "code": code_fingerprint("feddep.stages.audit")})
