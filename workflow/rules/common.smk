"""What all rules share: the checked configuration, the plan, and the form of a command.  Nothing is written here."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from feddep.config import variants
from feddep.config.loading import parsed, read, typed, validate
from feddep.experiment import keys, plan, records
from feddep.experiment.step_jobs import step_jobs
from feddep.stages import flags
from feddep.utils.errors import ConfigError, FeddepError


@contextmanager
def exit_on_user_error():
    """End the workflow with the sentence of an error where Snakemake would print a traceback; for a block or, with @, a function."""
    try:
        yield
    except FeddepError as error:
        sys.exit(f"feddep: {error}")


with exit_on_user_error():
    if not workflow.subprocess_exec:  # Snakemake keeps the last where a key occurs twice
        for path in workflow.configfiles:
            read(path)
        for given in workflow.config_settings.config_args or ():
            parsed(given.partition("=")[2], f"--config {given.partition('=')[0]}")
    update_config(config, typed(workflow.config_settings.config))
    config = validate(config)
    RUNS = {run.path: records.of_run(config, run) for run in plan.all_runs(config)}
    PARTITIONS = {spec.path: records.of_partition(config, spec) for spec in plan.partitions(config)}
    GRAPHS = {name: records.of_graph(config, name) for name in plan.datasets(config)}
    OUTDATED = sum(artifact.outdated for artifact in RUNS.values() if artifact.usable)
if OUTDATED and not workflow.subprocess_exec:
    told = "they are trained anew, as records.strict is true" if config["records"]["strict"] else "records.strict: true trains anew"
    print(f"feddep: the code of {OUTDATED} of {len(RUNS)} runs has changed since their records were made; {told}", file=sys.stderr)

OUTPUT = config["output"]
# Jobs inherit the configuration by value, so that no other workflow can change what they read.
os.environ[flags.ENVIRONMENT] = json.dumps(config)


wildcard_constraints:
    setting=variants.PATTERN,
    dataset=variants.PATTERN,
    method=variants.PATTERN,
    scope=r"whole|m[1-9]\d*",
    clients=r"[1-9]\d*",
    seed=r"0|[1-9]\d*",
    digest="[0-9a-f]{12}",


def feddep(stage):
    """The shell command of a stage: its output is shown and kept in the job's log, its numerics get the job's threads."""
    threads = " ".join(f"{name}={{threads}}" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"))
    python = shlex.quote(sys.executable).replace("{", "{{").replace("}", "}}")
    return f"{threads} {python} -u -m feddep {stage} 2>&1 | tee {{log:q}} >&2"


@cache
def gpus():
    """Number of GPUs that a training job asks for: one if the configuration requires it, or allows it and this machine has one.

    A cluster's GPUs are seldom where jobs are submitted: there ``device: cuda`` asks for them.
    """
    if config["device"] == "auto" and shutil.which("nvidia-smi"):
        return int(b"GPU" in subprocess.run(["nvidia-smi", "-L"], capture_output=True).stdout)
    return int(config["device"] == "cuda")


# Resources are integers, so that a share of a GPU is a whole of more GPUs: the limit grows, where this process keeps it.
if workflow.local_exec and workflow.is_main_process and (limit := workflow.global_resources.get("gpu").value) is not None:
    workflow.register_resource("gpu", limit * config["jobs_per_gpu"])
