"""What all rules share: the checked configuration, the plan, and where things are.

Nothing is written here.

A file of the cache is named by its key, so that its time tells nothing: before each plan all of
them get the same time.
"""

import os
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from feddep.config import variants
from feddep.config.loading import SOURCES, entry, read, typed, validate
from feddep.experiment import batches, data_tables, keys, plan, runs
from feddep.experiment.steps import step_jobs
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
        read(file)  # numbers that YAML reads otherwise are refused
    config = validate(typed(config))
    # The runs that no table has, by key.
    MISSING = {key: run for run, key in runs.missing(config, plan.all_runs(config)).items()}

OUTPUT = config["output"]
CACHE = f"{OUTPUT}/.cache"
# What a file's key stands for: of planned runs, and of those that are asked for beside them.
RUNS, STEPS, SPLITS = dict(MISSING), {}, {}
BATCHES = batches.batches(config, MISSING)
BATCH_OF = {key: batch for batch, runs_of in BATCHES.items() for key in runs_of}
PARTITIONS = {keys.partition_key(config, spec): spec for spec in plan.partitions(config)}


wildcard_constraints:
    dataset=r"[a-z][a-z0-9_]*",
    key="[0-9a-f]{16}",


def graph_file(dataset):
    """The prepared graph of a dataset or of a variant of one."""
    name = variants.base(dataset)
    return f"{CACHE}/graphs/{name}-{keys.graph_key(config, name)}.safetensors"


def split_file(dataset, seed):
    """The split of a dataset or of a variant of one, which may draw it otherwise."""
    key = keys.split_key(config, dataset, seed)
    SPLITS[key] = (variants.restricted(dataset, ["split", "split_train", "split_val"]), seed)
    return f"{CACHE}/splits/{variants.base(dataset)}-{key}.safetensors"


def partition_file(spec):
    name = f"{variants.base(spec.dataset)}-{keys.partition_key(config, spec)}"
    return f"{CACHE}/partitions/{name}.safetensors"


def task_files(run):
    """What every stage of a run reads: graph, split and, where it has clients, partition."""
    files = {"graph": graph_file(run.dataset)}
    # Within clients a split is drawn where the partition is read.
    if entry(config, "datasets", run.dataset)["split"] != "within_clients":
        files["split"] = split_file(run.dataset, run.seed)
    if run.partition is not None:
        files["partition"] = partition_file(run.partition)
        PARTITIONS[keys.partition_key(config, run.partition)] = run.partition
    return files


def step_files(run, stages=("pretrain", "prototypes", "generator")):
    """The results of a run's steps, by stage."""
    jobs = step_jobs(config, run)
    STEPS.update((job.key, job) for job in jobs)
    return {job.step.stage: f"{CACHE}/steps/{job.file}" for job in jobs if job.step.stage in stages}


def run_files(run):
    """The result and the weights of a run, which may be none of the plan's."""
    key = keys.run_key(config, run)
    RUNS[key] = run
    return {"run": f"{CACHE}/runs/{key}.json", "model": f"{CACHE}/models/{key}.safetensors"}


def results_of(planned):
    """Results of those runs that no table has; of a batch that is not yet trained, its receipt."""
    return [file for file in dict.fromkeys(map(result_of, planned)) if file is not None]


def result_of(run):
    """The result of a run that no table has, or the receipt of its batch; None if one has it."""
    if (key := keys.run_key(config, run)) not in MISSING:
        return None
    result, batch = f"{CACHE}/runs/{key}.json", BATCH_OF[key]
    receipt = f"{CACHE}/batches/{variants.base(run.dataset)}-{batch}.json"
    # A batch that was trained and has lost a result is not trained again: the one run is.
    alone = len(BATCHES[batch]) == 1
    return result if alone or Path(result).exists() or Path(receipt).exists() else receipt


def keys_of(planned):
    """What the runs of a page are, so that another plan makes it anew."""
    return keys.digest({"runs": [keys.run_key(config, run) for run in planned]})


def facts_of(kind):
    """Files of statistics of the main tables' graphs or partitions, by key."""
    if kind == "graphs":
        files = {keys.graph_key(config, name): graph_file(name) for name in plan.datasets(config)}
    else:
        specs = plan.partitions(config)
        files = {keys.partition_key(config, spec): partition_file(spec) for spec in specs}
    return {key: file.replace(".safetensors", ".json") for key, file in files.items()}


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


for planned in MISSING.values():
    task_files(planned)
    step_files(planned)


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
