"""The DAG from end to end on a made-up graph of 60 nodes: what runs, what runs again, and what does not."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest
import yaml
from snakemake.utils import update_config

from feddep.config.loading import validate
from feddep.experiment import plan
from feddep.graph.graph import Graph
from feddep.utils.storage import read_result, write_result
from workspace import CONFIG, FEDAVG, FEDDEP, GLOBAL, SNAKEMAKE, Workspace, metrics

pytestmark = [pytest.mark.dag, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace in which everything has been made once. Not to be changed: take a :func:`copy`."""
    workspace = Workspace.new(tmp_path_factory.mktemp("finished"))
    workspace.run()
    return workspace


@pytest.fixture
def copy(finished: Workspace, tmp_path: Path) -> Workspace:
    """A copy of the finished workspace, with its memory of what was made from what."""
    shutil.copytree(finished.directory, tmp_path / "copy")
    return Workspace(tmp_path / "copy")


def test_everything_is_made(finished: Workspace):
    output = finished.output
    for run in (FEDAVG, GLOBAL):
        content = finished.result(run)
        assert set(content) == {"key", "result", "provenance", "digest"}
        assert len(content["result"]["curve"]["round"]) == 2
        assert content["provenance"]["data_fingerprint"] == Graph.load(output / "graphs" / "mini.safetensors").fingerprint
        assert (output / "runs" / "quick" / run / "model.safetensors").stat().st_size > 0
        (log,) = (output / "logs" / "classify" / "quick").glob(f"{run}.log")
        assert "2/2" in log.read_text()  # the progress bar of two rounds
        assert (output / "benchmarks" / "classify" / "quick" / f"{run}.tsv").is_file()
    assert json.loads((output / "partitions/mini/m2/seed0.json").read_text())["statistics"]["missing_edges"] >= 0
    made = {path.relative_to(output).as_posix() for path in output.rglob("*") if path.is_file()}
    assert {"tables/accuracy.csv", "tables/accuracy.md", "figures/accuracy_quick.png", "report/report.html"} <= made
    assert not [name for name in made if "/." in name]  # no scratch file is left


def test_a_second_time_there_is_nothing_to_do(finished: Workspace):
    assert finished.jobs() == {}


def test_what_changes_a_number_runs_again_and_nothing_else(copy: Workspace):
    last = {"tables": 1, "figures": 1, "report": 1, "all": 1}
    copy.configure(settings__quick__learning_rate=0.05)
    assert copy.jobs() == {"classify": 2, **last}
    copy.configure(partition__delta=4)
    assert copy.jobs() == {"partition": 1, "classify": 1, **last}  # the whole-graph run has no partition
    copy.configure(split={"train": 0.5, "val": 0.25, "test": 0.25})
    assert copy.jobs() == {"split": 1, "classify": 2, **last}
    copy.configure(tables=[{**CONFIG["tables"][0], "methods": ["global", "fedavg", "local"]}])
    assert copy.jobs() == {"classify": 1, **last}
    copy.configure(threads=2, device="auto", records__directory="elsewhere")
    assert copy.jobs() == {}


def test_a_changed_parameter_is_trained_with(copy: Workspace):
    """Asking for one file makes that file."""
    before = copy.result(FEDAVG)
    partition = copy.output / "partitions/mini/m2/seed0.safetensors"
    made = partition.stat().st_mtime_ns
    copy.configure(settings__quick__rounds=3)
    copy.run(metrics(FEDAVG))
    after = copy.result(FEDAVG)
    assert len(after["result"]["curve"]["round"]) == 3
    assert after["key"] != before["key"]
    assert partition.stat().st_mtime_ns == made
    assert copy.jobs() == {"classify": 1, "tables": 1, "figures": 1, "report": 1, "all": 1}  # the other run


def test_two_runs_from_nothing_are_the_same(finished: Workspace, tmp_path: Path):
    again = Workspace.new(tmp_path, finished.directory)
    again.run("tables", "reproduction")
    for run in (FEDAVG, GLOBAL):
        assert again.result(run)["result"] == finished.result(run)["result"]
    ours, theirs = again.tables(), finished.tables()
    provenance = [json.loads(tables.pop("provenance.json")) for tables in (ours, theirs)]
    costs = [pd.read_csv(BytesIO(tables.pop("costs.csv"))) for tables in (ours, theirs)]
    costs_page = [tables.pop("costs.md") for tables in (ours, theirs)]
    assert all(tables.pop("tables.sha256") for tables in (ours, theirs))  # also of those that tell of time
    assert ours == theirs
    # Seconds are measured, and differ; all else of the costs does not.
    untimed = [table.drop(columns=[column for column in table if column.startswith("seconds")]) for table in costs]
    assert untimed[0].equals(untimed[1])
    assert len(costs_page[0].splitlines()) == len(costs_page[1].splitlines())
    assert set(provenance[0]) == set(provenance[1])


def test_published_records_stand_in_for_training(copy: Workspace):
    tables = copy.tables()
    assert "4 records changed" in copy.run("publish")
    assert copy.jobs() == {}  # publishing outdates nothing

    # A fresh clone has the records and nothing else.
    shutil.rmtree(copy.output)
    shutil.rmtree(copy.directory / ".snakemake")
    assert copy.jobs("tables") == {"tables": 1}
    assert "\n2 runs: 0 to train, 2 from records\n" in copy.run("tables", "reproduction")
    assert copy.tables() == tables
    assert not (copy.output / "graphs" / "mini.safetensors").exists()
    assert copy.jobs("tables") == {}

    # Pages that came with the clone are made again where they show something else, although nothing remembers their making.
    shutil.rmtree(copy.directory / ".snakemake")
    assert copy.jobs("tables") == {}
    copy.configure(tables=[{**CONFIG["tables"][0], "methods": ["fedavg"]}])
    assert copy.jobs("tables") == {"tables": 1}
    copy.configure()

    # Where one run is trained again, so is made what it needs.
    record = copy.directory / "records" / "quick" / f"{FEDAVG}.json"
    write_result(record, {**read_result(record), "key": "0" * 64})
    shutil.rmtree(copy.output)
    printed = copy.run("tables", "--dry-run", "--forcerun", "partition")
    assert re.search(r"^classify +1$", printed, re.MULTILINE)
    assert len(re.findall(r"\n2 runs: 1 to train \(about [\d.]+ core-hours\), 1 from records\n", printed)) == 1
    assert "feddep: records stand in for 1 of 2 runs, for which --forcerun partition makes nothing" in printed
    assert copy.jobs("tables") == {"prepare": 1, "split": 1, "partition": 1, "classify": 1, "tables": 1}

    # Without the records everything is trained.
    copy.configure(records__use=False)
    assert copy.jobs("tables") == {"prepare": 1, "split": 1, "partition": 1, "classify": 2, "tables": 1}
    copy.configure()
    assert copy.jobs("tables", "--config", "records={use: false}")["classify"] == 2


def test_an_interrupted_run_is_taken_up_again(tmp_path: Path, finished: Workspace):
    workspace = Workspace.new(tmp_path, finished.directory)
    workspace.configure(settings__quick__rounds=1_000_000)  # so that it cannot end before it is interrupted
    log = workspace.output / "logs" / "classify" / "quick" / f"{FEDAVG}.log"
    with workspace.started(metrics(FEDAVG), "--cores", "1") as process:
        while not (log.exists() and "/1000000" in log.read_text()):  # the progress bar: training has begun
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
        process.communicate()
    assert process.returncode != 0
    assert not list(workspace.output.rglob("metrics.json"))
    graph = workspace.output / "graphs" / "mini.safetensors"
    prepared = graph.stat().st_mtime_ns

    workspace.configure()
    workspace.run(metrics(FEDAVG))
    assert graph.stat().st_mtime_ns == prepared
    assert workspace.result(FEDAVG)["result"] == finished.result(FEDAVG)["result"]


def test_a_wrong_key_is_named_in_one_sentence(tmp_path: Path):
    workspace = Workspace.new(tmp_path)
    workspace.configure(settings__quick={"optimiser": "adam"})
    printed = workspace.run("--dry-run", fails=True)
    assert "settings.quick.optimiser is not a known key; allowed: optimizer, learning_rate" in printed
    assert "Traceback" not in printed
    assert not workspace.output.exists()
    workspace.configure()
    printed = workspace.run(metrics("mini/m2/feddep,prottypes=3/seed0"), fails=True)
    assert re.search("feddep: methods.feddep.prottypes is not a known key; allowed: .*\n$", printed)  # and nothing after it
    assert "Traceback" not in printed


def test_a_failing_job_fails_the_workflow_and_shows_why(tmp_path: Path):
    workspace = Workspace.new(tmp_path)
    workspace.configure(datasets__mini__synthetic__nodes=8)  # too few for six communities
    printed = workspace.run("tables", fails=True)
    assert re.search(r"feddep prepare: .*communities", printed)
    assert "Traceback" not in printed
    assert not (workspace.output / "graphs" / "mini.safetensors").exists()


def test_the_default_configuration_is_the_whole_benchmark(tmp_path: Path):
    """Plain `snakemake` plans config.yaml; --config changes one key of it and leaves the others. Nothing is written."""
    workspace = Workspace.new(tmp_path)
    before = sorted(path for path in tmp_path.rglob("*") if ".snakemake" not in path.parts and "__pycache__" not in path.parts)
    table = {"setting": "feddep", "datasets": ["cora", "pubmed"], "methods": ["fedavg", "feddep"]}
    arguments = ["--dry-run", "--config", "seeds=[0]", "records={use: false}", "output=there", f"tables=[{json.dumps(table)}]"]
    command = [*SNAKEMAKE, *arguments, "studies=[]"]
    done = subprocess.run(command, cwd=workspace.directory, capture_output=True, text=True, check=True)
    shipped = yaml.safe_load((workspace.directory / "config" / "config.yaml").read_text())
    asked = {"seeds": [0], "output": "there", "tables": [table], "studies": []}
    runs = plan.runs(validate({**shipped, **asked}))
    planned = done.stdout + done.stderr
    assert re.search(rf"^classify +{len(runs)}$", planned, re.MULTILINE)
    assert re.search(r"^download +2$", planned, re.MULTILINE)
    after = sorted(path for path in tmp_path.rglob("*") if ".snakemake" not in path.parts and "__pycache__" not in path.parts)
    assert after == before


def test_a_dry_run_beside_a_running_workflow_changes_nothing(copy: Workspace):
    """Another configuration that is planned in the same folder has files of its own."""
    before = {path: path.read_bytes() for path in copy.output.rglob("*") if path.is_file()}
    copy.configure(split={"train": 0.3, "val": 0.3, "test": 0.4})
    assert copy.jobs()["classify"] == 2
    assert {path: path.read_bytes() for path in copy.output.rglob("*") if path.is_file()} == before


def test_each_study_is_made_of_its_own_runs(copy: Workspace):
    """Without training anything, as both are about runs that are there."""
    runs = [{"methods": {"fedavg": {}}}]
    copy.configure(
        studies=[{"name": "history", "kind": "curves", "runs": runs}, {"name": "alone", "kind": "sweep", "runs": runs}]
    )
    assert copy.jobs("studies") == {"study": 2, "study_table": 1, "studies": 1}
    copy.run("studies")
    tables = {study: (copy.output / "studies" / study / "table.csv").read_text() for study in ("history", "alone")}
    assert (copy.output / "studies" / "history" / "rounds.csv").is_file()
    assert "fedavg" in tables["history"]
    assert tables["history"] != tables["alone"]
    assert (copy.output / "studies" / "alone" / "figure.png").stat().st_size > 0
    assert copy.jobs("studies") == {}


def test_the_steps_of_a_method_are_stages_that_are_cached(finished: Workspace, tmp_path: Path):
    shutil.copytree(finished.directory, tmp_path / "copy")
    workspace = Workspace(tmp_path / "copy")
    workspace.configure(methods={"feddep": FEDDEP})
    target = metrics("mini/m2/feddep/seed0")
    assert workspace.jobs(target) == {"step": 3, "classify": 1}
    workspace.run(target)
    result = workspace.result("mini/m2/feddep/seed0")
    assert set(result["provenance"]["seconds_before"]) == {"pretrain", "prototypes", "generator"}
    assert {row["kind"] for row in result["result"]["communication"]} == {"prototypes", "model", "training", "validation"}
    (sent,) = (workspace.output / "steps" / "generator").rglob("*.json")
    assert json.loads(sent.read_text())["communication"] == []  # nothing is sent while generators are trained

    variant = metrics("mini/m2/feddep,prototypes=2/seed0")  # asked for by its path, planned nowhere
    assert workspace.jobs(variant) == {"step": 2, "classify": 1}
    assert workspace.jobs(metrics("mini/m2/feddep_wo_proto,embedding=4,pretraining_epochs=1/seed0")) == {
        "step": 1,
        "classify": 1,
    }
    workspace.configure(methods={"feddep": {**FEDDEP, "generator_epochs": 2}})
    assert workspace.jobs(target) == {"step": 1, "classify": 1}
    workspace.configure(methods={"feddep": FEDDEP}, settings__quick__rounds=3)  # which no step reads
    assert workspace.jobs(target) == {"classify": 1}


def test_a_stage_by_hand_computes_what_the_workflow_does(finished: Workspace, tmp_path: Path):
    """A run without the files of its steps makes them itself, with the same result."""
    shutil.copytree(finished.directory, tmp_path / "copy")
    workspace = Workspace(tmp_path / "copy")
    workspace.configure(methods={"feddep": FEDDEP})
    workspace.run(metrics("mini/m2/feddep/seed0"))
    out = workspace.output
    shipped = yaml.safe_load((workspace.directory / "config" / "config.yaml").read_text())
    given = yaml.safe_load((workspace.directory / "config.yaml").read_text())
    update_config(shipped, given)
    (workspace.directory / "merged.yaml").write_text(yaml.safe_dump(shipped, sort_keys=False))
    flags = [
        "--config",
        workspace.directory / "merged.yaml",
        "--dataset",
        "mini",
        "--method",
        "feddep",
        "--setting",
        "quick",
        "--seed",
        "0",
    ]
    files = {
        "graph": out / "graphs/mini.safetensors",
        "split": out / "splits/mini/seed0.safetensors",
        "partition": out / "partitions/mini/m2/seed0.safetensors",
        "metrics": tmp_path / "metrics.json",
        "model": tmp_path / "model.safetensors",
    }
    flags += ["--clients", "2", *(part for name, file in files.items() for part in (f"--{name}", file))]
    environment = {**os.environ, "PYTHONPATH": str(workspace.directory)}
    subprocess.run([sys.executable, "-m", "feddep", "classify", *map(str, flags)], env=environment, check=True)
    assert json.loads(files["metrics"].read_text())["result"] == workspace.result("mini/m2/feddep/seed0")["result"]


def test_a_partition_of_another_kind_is_a_variant_of_the_dataset(copy: Workspace):
    run = FEDAVG.replace("mini/", "mini,partition=random/")
    assert copy.jobs(metrics(run)) == {"partition": 1, "classify": 1}  # the graph and its split are there
    copy.run(metrics(run))
    assert copy.result(run)["result"]["specification"]["partition"] == {"clients": 2, "method": "random"}
    statistics = json.loads((copy.output / "partitions/mini,partition=random/m2/seed0.json").read_text())["statistics"]
    assert statistics["method"] == "random"
    assert [client["nodes"] for client in statistics["per_client"]] == [30, 30]


@pytest.mark.parametrize("sharing", [1, 2])
def test_jobs_share_a_gpu_as_the_configuration_says(copy: Workspace, sharing: int):
    """Two trainings ask for the one GPU that there is; what they would compute is there already, and is only touched."""
    copy.configure(device="cuda", jobs_per_gpu=sharing)
    printed = copy.run("--touch", "--forcerun", "classify", "--resources", "gpu=1", "--until", "classify", "--verbose")
    started = [int(count) for count in re.findall(r"Selected jobs: (\d+)", printed)]
    assert max(started) == sharing
    assert sum(started) == 2
