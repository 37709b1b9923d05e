"""What every rule shares: the checked configuration, the plan, and the form of a command."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from feddep import plan, preparations, records, variants
from feddep.config import MEASURED, validate
from feddep.errors import FeddepError
from feddep.storage import read_json, write_json


def typed(value):
    """Values given with --config: Snakemake leaves what is nested as text, so it is read as the YAML that it is."""
    if isinstance(value, Mapping):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return yaml.safe_load(value) if isinstance(value, str) else value


GIVEN = typed(workflow.config_settings.config)
CHOICES = ("datasets", "settings", "frameworks")
for key, value in GIVEN.items():
    # Snakemake merges mappings. Of datasets, settings, frameworks and rows those that are named are meant, and no others.
    merged = isinstance(value, Mapping) and key not in (*CHOICES, "rows")
    config[key] = {**config.get(key, {}), **value} if merged else value
# Another experiment: what the file says about entries of its own is not meant.
if "frameworks" in GIVEN and "rows" not in GIVEN:
    config.pop("rows", None)
if "settings" in GIVEN and "rows" not in GIVEN and isinstance(config.get("rows"), Mapping):
    config["rows"] = next(iter(config["rows"].values()))  # of the first setting
for key in ("studies", *MEASURED):
    if key not in GIVEN and any(choice in GIVEN for choice in CHOICES):
        config.pop(key, None)

try:
    config = validate(config)
    RUNS = {run.path: records.of_run(config, run) for run in plan.all_runs(config)}
    CUTS = {cut.path: records.of_partition(config, cut) for cut in plan.cuts(config)}
    GRAPHS = {name: records.of_graph(config, name) for name in config["datasets"]}
except FeddepError as error:
    sys.exit(f"feddep: {error}")

OUTPUT = config["output"]
CONFIG = Path(OUTPUT, "config.json")
if not CONFIG.is_file() or read_json(CONFIG) != config:
    write_json(CONFIG, config)


wildcard_constraints:
    setting=variants.PATTERN,
    dataset=variants.PATTERN,
    framework=variants.PATTERN,
    scope=r"whole|m\d+",
    clients=r"\d+",
    seed=r"\d+",
    step="[0-9a-f]{12}",


def feddep(stage):
    """The shell command of a stage: its output is shown and kept in the job's log, its numerics get the job's threads."""
    threads = " ".join(f"{name}={{threads}}" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"))
    return f"{threads} {shlex.quote(sys.executable)} -u -m feddep {stage} 2>&1 | tee {{log}} >&2"


def gpus():
    """Number of GPUs that a training job takes: one where the machine has one and the configuration does not forbid it."""
    if config["device"] == "cpu" or shutil.which("nvidia-smi") is None:
        return 0
    return int(b"GPU" in subprocess.run(["nvidia-smi", "-L"], capture_output=True).stdout)


def run_of(wildcards):
    """The run that a file belongs to. It need not be planned: whatever can be spelled can be made."""
    clients = None if wildcards.scope == "whole" else int(wildcards.scope[1:])
    return plan.Run(wildcards.setting, wildcards.dataset, clients, wildcards.framework, int(wildcards.seed))


def problem_files(wildcards):
    """What every stage of a run reads: graph, split and, for a framework that works on subgraphs, partition."""
    dataset, seed = variants.base(wildcards.dataset), wildcards.seed
    files = {"graph": f"{OUTPUT}/graphs/{dataset}.safetensors", "split": f"{OUTPUT}/splits/{dataset}/seed{seed}.safetensors"}
    if wildcards.scope != "whole":
        files["partition"] = f"{OUTPUT}/partitions/{dataset}/{wildcards.scope}/seed{seed}.safetensors"
    return files


def problem_flags(run, input, made):
    """The flags by which every stage of a run is told what to work on; ``made`` are results of earlier stages."""
    values = {"dataset": run.dataset, "framework": run.framework, "setting": run.setting, "seed": run.seed, "clients": run.clients}
    values |= {name: input.get(name) for name in ("graph", "split", "partition")}
    flags = [f"--{name} {shlex.quote(str(value))}" for name, value in values.items() if value is not None]
    return " ".join([*flags, *(f"--made {stage}={file}" for stage, file in made.items())])
