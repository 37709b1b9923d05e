"""The DAG from end to end on a made-up graph of 60 nodes: what runs, what runs again, and what does
not.
"""

import base64
import json
import os
import re
import shutil
import subprocess
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from benchmarks.main_table import summary as summary_of_jobs
from benchmarks.workflow import jobs
from feddep.config.loading import validate
from feddep.experiment import batches, plan, runs, verification
from graphs import npz_arrays, random_graph
from workspace import CONFIG, REPOSITORY, SNAKEMAKE, STEPS, Workspace, list_gpus

pytestmark = [pytest.mark.dag, pytest.mark.timeout(900)]
EVERYTHING = {"prepare": 1, "split": 1, "partition": 1, "batch": 1}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace in which everything has been made once. Plan in it, and :func:`copy` it to run
    anything.
    """
    workspace = Workspace(tmp_path_factory.mktemp("finished"))
    assert workspace.jobs("train") == EVERYTHING
    workspace.run()
    return workspace


@pytest.fixture
def copy(finished: Workspace, tmp_path: Path) -> Workspace:
    """A copy of the finished workspace, with its memory of what was made from what."""
    shutil.copytree(finished.folder, tmp_path / "copy")
    return Workspace(tmp_path / "copy")


@pytest.mark.parametrize("method", ["global", "fedavg", "feddep"])
def test_a_run_of_the_workflow_is_that_of_one_process(
    finished: Workspace, method: str, tmp_path: Path
):
    """With its steps in files or not, its numbers are the same to the last bit."""
    finished.configure()
    run = finished.runs[method]
    assert (row := finished.row(method))["rounds"] == 2
    anew = verification.Trainer(finished.config, tmp_path).record(run)
    assert verification.differences(finished.config, anew, run) == {}
    assert set(json.loads(row["seconds_before"])) == (
        {"pretrain", "prototypes", "generator"} if method == "feddep" else set()
    )
    assert (finished.cache / "models" / f"{row['key']}.safetensors").stat().st_size > 0
    (log,) = finished.cache.glob("logs/batches/*.log")
    assert log.read_text().count("2/2") >= 3  # the progress bars of two rounds
    assert not list(finished.cache.rglob(".*"))  # no scratch file is left


def test_benchmarks_read_time_and_memory_of_jobs(finished: Workspace):
    measured = summary_of_jobs(jobs(finished.folder / "out"), wall=1.0)
    assert measured["stage"].to_list() == ["prepare", "split", "partition", "train", "wall"]
    assert measured["jobs"].to_list() == [*[1] * 4, 4]
    assert (measured["seconds"] > 0).all()
    assert (measured["peak_mib"] > 10).all()


def test_what_changes_a_number_runs_again_and_nothing_else(finished: Workspace):
    assert finished.jobs(threads=2, device="auto", records={"directory": "elsewhere"}) == {}
    assert finished.jobs(settings={"quick": {"rounds": 3}}) == {"batch": 1}  # which no step reads
    # Global has no partition.
    assert finished.jobs(partition={"delta": 4}) == {"partition": 1, "batch": 1}


def test_a_step_that_batches_share_is_a_job(tmp_path: Path):
    block = {"methods": {"feddep": {"prototypes": [2, 3]}, "fedavg": {}}}
    few = {"name": "few", "kind": "sweep", "runs": [block]}
    assert Workspace(tmp_path).jobs(studies=[few]) == {**EVERYTHING, "pretrain": 1, "train": 1}


def test_a_copy_is_as_good_whatever_the_times_of_its_files(copy: Workspace):
    times = np.random.default_rng(0).permutation(10**6)
    for time, path in zip(
        times, sorted(each for each in copy.folder.rglob("*") if each.is_file()), strict=False
    ):
        os.utime(path, (time, time))
    assert copy.jobs() == {}
    shutil.rmtree(copy.folder / ".snakemake")
    assert copy.jobs() == {}


@pytest.mark.parametrize(
    ("stage", "again"),
    [
        (
            "prepare",
            {"prepare": 1, "split": 1, "partition": 1, **dict.fromkeys(STEPS, 1), "train": 3},
        ),
        ("prototypes", {"prototypes": 1, "generator": 1, "train": 1}),
    ],
)
def test_a_forced_stage_has_all_that_follows_made_again(
    finished: Workspace, stage: str, again: dict[str, int]
):
    finished.configure()
    pages = {"main_tables": 1, "all": 1}
    assert finished.planned("--forcerun", stage) == {**again, **pages}


def test_a_stage_is_a_target(finished: Workspace, tmp_path: Path):
    workspace = Workspace(tmp_path)
    steps = {"split": 1, "partition": 1, "pretrain": 1, "prototypes": 1}
    assert workspace.jobs("prototypes") == {"prepare": 1, **steps}
    # The word is a target and what an option takes.
    assert workspace.jobs("split", "--forcerun", "split") == {"prepare": 1, "split": 1}
    assert "download" in workspace.run("--dry-run", "download", fails=True).splitlines()[-1]
    # Its files are those of a batch.
    workspace.run("generator")
    alone, together = (
        {file.name: file.read_bytes() for file in each.cache.glob("steps/*/*.safetensors")}
        for each in (workspace, finished)
    )
    assert len(alone) == len(STEPS)
    assert alone == together


def test_what_a_kill_left_half_done_is_made_again_with_all_that_follows(copy: Workspace):
    for file in copy.cache.glob("partitions/*"):
        name = base64.b64encode(str(file.relative_to(copy.folder)).encode()).decode()
        (copy.folder / ".snakemake" / "incomplete" / name).touch()
    assert copy.jobs() == {"partition": 1, **dict.fromkeys(STEPS, 1), "train": 2}
    copy.configure(tables=[{**CONFIG["tables"][0], "methods": ["fedavg"]}])
    copy.run("train")
    # What was there before has a time of 1970.
    files = [file for file in copy.cache.rglob("*.safetensors") if file.stat().st_mtime > 1]
    partition, model = sorted(files, key=lambda file: file.parent.name, reverse=True)
    assert partition.parent.name == "partitions"
    assert model.stem == copy.runs["fedavg"].key


@pytest.mark.parametrize(("gpus", "trainings", "started"), [(2, 1, [2, 1]), (1, 3, [3])])
def test_as_many_trainings_run_as_have_a_place_on_a_gpu(
    copy: Workspace, gpus: int, trainings: int, started: list[int], monkeypatch: pytest.MonkeyPatch
):
    """What the three trainings would compute is there already, and is only touched."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", list_gpus(copy.folder / "bin", gpus))
    copy.configure(device="cuda", trainings_per_gpu=trainings)
    printed = copy.run("--touch", "--forcerun", "train", "--cores", "4", "--verbose")
    selected = [int(count) for count in re.findall(r"Selected jobs: (\d+)", printed)]
    assert selected[: len(started)] == started


def test_a_training_has_a_gpu(copy: Workspace, monkeypatch: pytest.MonkeyPatch):
    """PyTorch finds none of these GPUs, and trains on the processor; that each training has one of
    its own is tested in tests/utils/test_gpus.py.
    """
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", list_gpus(copy.folder / "bin", 2))
    table = {**CONFIG["tables"][0], "methods": ["local"]}
    copy.configure(device="auto", tables=[table])
    copy.run("train")
    (log,) = copy.cache.glob("logs/train/*.log")
    assert re.search(r"on GPU [01]", log.read_text())


def test_published_runs_stand_in_for_training(copy: Workspace):
    every = list(copy.runs.values())
    before, curves = runs.load(copy.config, every), runs.load_curves(copy.config, every)
    copy.run("publish")
    assert (copy.folder / "runs" / "graphs.csv").is_file()
    assert (copy.folder / "runs" / "partitions.csv").is_file()

    # A fresh clone has the tables and nothing else.
    page = (copy.folder / "out" / "main" / "accuracy.csv").read_bytes()
    shutil.rmtree(copy.folder / "out")
    shutil.rmtree(copy.folder / ".snakemake")
    copy.run()
    assert not copy.cache.joinpath("graphs").exists()
    assert (copy.folder / "out" / "main" / "accuracy.csv").read_bytes() == page
    assert runs.load(copy.config, every).equals(before)
    assert runs.load_curves(copy.config, every).equals(curves)
    printed = copy.run("--dry-run", "--forcerun", "pretrain", fails=True)
    assert "records={use: false}" in printed.splitlines()[-1]

    # A run that is in no table is trained, and all that it needs is made.
    table = copy.folder / "runs" / "quick.csv"
    table.write_text(
        "".join(line for line in table.read_text().splitlines(True) if ",fedavg," not in line)
    )
    assert copy.jobs() == {"prepare": 1, "split": 1, "partition": 1, "train": 1}


def test_a_search_goes_on_from_what_is_trained(tmp_path: Path):
    """From trials to what they chose, its final runs and their table."""
    workspace = Workspace(tmp_path)
    search = {"setting": "quick", "datasets": ["mini"], "methods": ["fedprox", "fedper"]}
    search |= {"clients": 2, "trials": 3, "seeds": [0, 1]}
    study = {"name": "found", "kind": "searched", "search": search, "search_seeds": [7, 8]}
    settings = {"quick": {"rounds": 2, "hidden_channels": 16}}
    workspace.configure(studies=[study], settings=settings)
    workspace.run("out/found/choices.csv")
    config = workspace.config
    trials, finalists, final = plan.stages(config, "found")
    assert (len(trials), {run.seed for run in finalists}) == (7, {8})
    assert len(final) in (4, 6)  # both searches of the reference may choose the same
    choices = (tmp_path / "out" / "found" / "choices.csv").read_bytes()
    assert len(pd.read_csv(BytesIO(choices))) == 3
    assert not any(runs.cached(config, run.key).exists() for run in final)

    # A trial that was lost is trained again, and nothing after it.
    runs.cached(config, trials[3].key).unlink()
    before = {file: file.read_bytes() for file in workspace.cache.glob("runs/*.json")}
    workspace.run("out/found/page.md")
    after = {file: file.read_bytes() for file in workspace.cache.glob("runs/*.json")}
    made = {file for file, content in after.items() if before.get(file) != content}
    assert made == {runs.cached(config, run.key) for run in [trials[3], *final]}
    assert (tmp_path / "out" / "found" / "choices.csv").read_bytes() == choices
    table = pd.read_csv(tmp_path / "out" / "found" / "table.csv")
    assert table["method"].to_list() == ["fedprox", "fedper", "fedprox"]
    assert table["mean"].between(0, 1).all()

    # A fresh clone has the tables of runs alone.
    found = plan.choices(config, "found")
    runs.publish(config, [*trials, *finalists, *final])
    shutil.rmtree(tmp_path / "out")
    assert plan.choices(config, "found").equals(found)
    assert plan.stages(config, "found")[-1] == final


def test_a_mistake_is_one_sentence_and_a_failing_job_leaves_nothing(tmp_path: Path):
    workspace = Workspace(tmp_path)
    workspace.configure(settings={"quick": {"optimiser": "adam"}})
    printed = workspace.run("--dry-run", fails=True)
    assert "settings.quick.optimiser" in printed.splitlines()[-1]
    assert not (tmp_path / "out").exists()
    # Too few for six communities.
    workspace.configure(datasets={"mini": {"synthetic": {"nodes": 8}}})
    failed = workspace.run(fails=True)
    assert "\nfeddep: " in failed
    assert "Traceback" not in printed + failed
    assert not list(workspace.cache.rglob("*.safetensors"))


def test_the_default_configuration_is_the_whole_benchmark(tmp_path: Path):
    """Plain `snakemake` plans config/default.yaml; --config changes one key of it and leaves the
    others.
    """
    (tmp_path / "studies").symlink_to(REPOSITORY / "studies")
    table = {"setting": "feddep", "datasets": ["cora", "pubmed"], "methods": ["fedavg", "feddep"]}
    changes = {"seeds": [0], "output": "there", "tables": [table], "studies": []}
    given = [
        f"{key}={json.dumps(value) if isinstance(value, list) else value}"
        for key, value in changes.items()
    ]
    command = [*SNAKEMAKE, "--dry-run", "--config", *given, "records={use: false}"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    shipped = yaml.safe_load((REPOSITORY / "config" / "default.yaml").read_text())
    planned = [line.split() for line in (done.stdout + done.stderr).splitlines()]
    config = validate({**shipped, **changes, "records": {"directory": "none"}})
    made = batches.batches(config, {run.key: run for run in plan.runs(config)})
    assert ["batch", str(len(made))] in planned
    assert ["download", "2"] in planned
    assert not (tmp_path / "there").exists()


def test_a_graph_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is known by its content, and a change of it is noticed."""
    monkeypatch.chdir(tmp_path)
    workspace = Workspace(tmp_path)
    graph = random_graph(60, 150)
    np.savez(tmp_path / "my graph; touch pwned.npz", **npz_arrays(graph))
    table = [{"setting": "quick", "datasets": ["mine"], "methods": ["global"]}]
    changes = {"datasets": {"mine": {"path": "my graph; touch pwned.npz"}}, "tables": table}
    workspace.configure(**changes)
    workspace.run("prepare")
    assert workspace.runs.keys() == {"global"}
    assert not (tmp_path / "pwned").exists()
    facts = json.loads(next((workspace.cache / "graphs").glob("mine-*.json")).read_text())
    assert (facts["nodes"], facts["fingerprint"]) == (60, graph.fingerprint)

    (tmp_path / "my graph; touch pwned.npz").rename(tmp_path / "moved.npz")
    changes["datasets"]["mine"]["path"] = "moved.npz"
    np.savez(tmp_path / "moved.npz", **npz_arrays(random_graph(60, 150, seed=1)))
    assert workspace.jobs(**changes) == {"prepare": 1, "split": 1, "train": 1}
    (tmp_path / "moved.npz").unlink()
    printed = workspace.run("--dry-run", fails=True)
    assert "moved.npz" in printed.splitlines()[-1]
    assert "Traceback" not in printed
