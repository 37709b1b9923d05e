"""What all rules share: the checked configuration, the plan, and where things are.

Nothing is written here.

A file of the cache is named by its key, so that its time tells nothing: before each plan all of
them get the same time.
"""

import os
import sys
from collections import defaultdict
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from feddep.config.entries import SOURCES
from feddep.config.loading import read, typed, validate
from feddep.experiment import batches, data_tables, keys, plan, runs
from feddep.experiment.steps import step_jobs
from feddep.reporting import studies as kinds_of_studies
from feddep.utils.errors import FeddepError
from feddep.utils.gpus import count


@contextmanager
def exit_on_user_error():
    """End the workflow with the sentence of an error where Snakemake would print a traceback."""
    try:
        yield
    except FeddepError as error:
        sys.exit(f"feddep: {error}")


with exit_on_user_error():
    for file in workflow.configfiles:
        read(file)  # in which Snakemake overlooks a key that is there twice
    config = validate(typed(config))
    kinds_of_studies.check_kinds(config)
    # Those without code of their own, and their runs: lists of which a search knows the first.
    STUDIES = {
        name: plan.stages(config, name)
        for name, study in config["studies"].items()
        if not plan.has_code(study["kind"])
    }
    PARTITIONS = {run.partition_key: run for run in plan.partitions(config)}

os.environ["MPLBACKEND"] = "agg"  # figures are files, whatever the user's screen
OUTPUT = config["output"]
CACHE = f"{OUTPUT}/.cache"
# The runs that no table has, by key, and the batches that they are trained in.
MISSING, BATCHES, BATCH_OF = {}, {}, {}
REGISTERED = set()
# What a file's key stands for: of planned runs, and of those that are asked for beside them.
RUNS, STEPS, SPLITS = {}, {}, {}
STEP_STAGES = ("pretrain", "prototypes", "generator")
# The batches, and studies that measure runs, that read the file of a step.
READERS = defaultdict(set)


wildcard_constraints:
    dataset=r"[a-z][a-z0-9_]*",
    key="[0-9a-f]{16}",


def graph_file(name, key):
    """The prepared graph of a dataset."""
    return f"{CACHE}/graphs/{name}-{key}.safetensors"


def partition_file(run):
    """The partition of a run."""
    return f"{CACHE}/partitions/{run.dataset.name}-{run.partition_key}.safetensors"


def task_files(run):
    """What every stage of a run reads: graph, split and, where it has clients, partition."""
    files = {"graph": graph_file(run.dataset.name, run.graph_key)}
    # Within clients a split is drawn where the partition is read.
    if run.split.options["method"] != "within_clients":
        SPLITS[run.split_key] = run
        files["split"] = f"{CACHE}/splits/{run.dataset.name}-{run.split_key}.safetensors"
    if run.clients is not None:
        PARTITIONS[run.partition_key] = run
        files["partition"] = partition_file(run)
    return files


def step_files(run, stages=STEP_STAGES, reader=None):
    """The results of a run's steps, by stage; a batch or a study that reads them may be noted."""
    jobs = step_jobs(run)
    STEPS.update((job.key, job) for job in jobs)
    files = {job.step.stage: f"{CACHE}/steps/{job.file}" for job in jobs if job.step.stage in stages}
    if reader is not None:
        for file in files.values():
            READERS[file].add(reader)
    return files


def input_files(run):
    """What other jobs make for a run: its data, and those of its steps that are there, that others
    read too, or that are made until one that is asked for.  It computes all other steps itself.
    """
    until, batch = workflow.dag_settings.until & set(STEP_STAGES), {BATCH_OF.get(run.key)}
    made = {
        stage: file
        for stage, file in step_files(run).items()
        if until or READERS[file] - batch or Path(file).exists()
    }
    return {**task_files(run), **made}


def run_files(run):
    """The result and the weights of a run, which may be none of the plan's."""
    RUNS[run.key] = run
    return {"run": f"{CACHE}/runs/{run.key}.json", "model": f"{CACHE}/models/{run.key}.safetensors"}


def results_of(planned):
    """Results of those runs that no table has; of a batch that is not yet trained, its receipt."""
    return [file for file in dict.fromkeys(map(result_of, planned)) if file is not None]


def result_of(run):
    """The result of a run that no table has, or the receipt of its batch; None if one has it."""
    if run.key not in MISSING:
        return None
    result, batch = f"{CACHE}/runs/{run.key}.json", BATCH_OF[run.key]
    receipt = f"{CACHE}/batches/{run.dataset.name}-{batch}"
    # A batch that was trained and has lost a result is not trained again: the one run is.
    alone = len(BATCHES[batch]) == 1
    return result if alone or Path(result).exists() or Path(receipt).exists() else receipt


def keys_of(planned):
    """What the runs of a page are, so that another plan makes it anew."""
    return keys.digest({"runs": [run.key for run in planned]})


def facts_of(kind):
    """Files of statistics of the main tables' graphs or partitions, by key."""
    if kind == "graphs":
        files = {key: graph_file(name, key) for name, key in plan.graphs(config).items()}
    else:
        files = {run.partition_key: partition_file(run) for run in plan.partitions(config)}
    return {key: file.replace(".safetensors", ".json") for key, file in files.items()}


@cache
def missing_facts(kind):
    """The files of statistics of graphs or partitions that no table has."""
    return list(data_tables.missing(config, kind, facts_of(kind)).values())


def statistics_files():
    """The statistics that no table has."""
    return [*missing_facts("graphs"), *missing_facts("partitions")]


machine_gpus = cache(count)


def gpus():
    """Number of GPUs that a training job asks for: one if the configuration requires it, or allows
    it and this machine has one.

    A cluster's GPUs are seldom where jobs are submitted: there ``device: cuda`` asks for them.
    """
    return min(machine_gpus(), 1) if config["device"] == "auto" else int(config["device"] == "cuda")


# What --resources or a profile says comes first.
if workflow.is_main_process and gpus() * machine_gpus() and "gpu" not in workflow.global_resources:
    workflow.register_resource("gpu", machine_gpus() * config["trainings_per_gpu"])


def register(planned):
    """Have those of the runs trained that no table has, in batches of their own.

    So the batches of a list of a search are the same whatever is known of other searches.
    """
    if all(run.key in REGISTERED for run in planned):
        return
    REGISTERED.update(run.key for run in planned)
    found = {key: run for run, key in runs.missing(config, planned).items()}
    MISSING.update(found)
    RUNS.update(found)
    made = batches.batches(config, found)
    BATCHES.update(made)
    for batch, members in made.items():
        for key in members:
            BATCH_OF.setdefault(key, batch)
    for run in found.values():
        task_files(run)
        step_files(run, reader=BATCH_OF[run.key])


with exit_on_user_error():
    firsts = (run for first, *_ in STUDIES.values() for run in first)
    register(dict.fromkeys([*plan.runs(config), *firsts]))
    for _, *later in STUDIES.values():
        for planned in later:
            register(planned)


def results_of_study(study, lists=3):
    """Results of the runs of a study; of a search those of so many lists, planned one by one."""
    entry, known = config["studies"][study], plan.stages(config, study)
    for planned in known:
        register(planned)
    if entry["search"] and len(known) < lists:
        if len(known) == 1:
            checkpoints.trials.get(study=study, key=keys_of(known[0]))
        else:
            checkpoints.choices.get(study=study)
    named = [file for name in entry["studies"] for file in results_of_study(name)]
    return named + results_of(run for planned in known[:lists] for run in planned)


def give_same_times():
    """Give all files of the cache one time, however they were copied.

    Inputs are plain, so that what is made anew has all that follows made anew: where a stage is
    forced, or an interruption left its file half-done. Snakemake then compares the times of files
    that it has no memory of, such as those that a batch wrote, whatever its triggers are.
    """
    for folder, _, files in os.walk(CACHE):
        for file in files:
            os.utime(Path(folder, file), (1, 1))


if workflow.is_main_process:  # jobs, here or on a cluster, write meanwhile
    give_same_times()
