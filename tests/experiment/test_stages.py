"""The stages of the workflow: each writes what it says, and reads nothing that the configuration
does not ask for.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from feddep.config.loading import Config, merged, validate
from feddep.experiment import data_tables, plan, runs, stages, training_stages, verification
from feddep.experiment.plan import Run, one_run
from feddep.experiment.steps import step_jobs
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.utils.errors import ConfigError, DataError, FeddepError
from feddep.utils.files import read_arrays, write_json
from graphs import npz_arrays, random_graph
from workspace import CONFIG

RAW: dict[str, Any] = {
    **{**CONFIG, "datasets": {**CONFIG["datasets"], "cora": {}}},
    "tables": [{"setting": "quick", "datasets": ["mini"], "methods": ["feddep"]}],
}


def feddep_in(config: Config) -> Run:
    return one_run(config, "feddep", 2, dataset="mini")


FEDDEP = feddep_in(validate(RAW))


class Made:
    """A folder in which every stage of one run has been done."""

    def __init__(self, folder: Path) -> None:
        self.config = config = validate(
            {**RAW, "output": str(folder), "records": {"directory": str(folder / "runs")}}
        )
        self.files = {
            name: folder / f"{name}.safetensors"
            for name in ("graph", "split", "partition", "pretrain", "prototypes", "generator")
        }
        self.facts = {name: str(folder / f"{name}.json") for name in ("graph", "partition")}
        graph = self.files["graph"]
        stages.prepare(config, "mini", None, graph, Path(self.facts["graph"]))
        stages.split(FEDDEP, graph, self.files["split"])
        stages.partition(FEDDEP, graph, self.files["partition"], Path(self.facts["partition"]))
        for planned in step_jobs(FEDDEP):
            training_stages.step(config, planned, self.files, self.files[planned.step.stage])
        self.trained = runs.cached(config, FEDDEP.key)
        self.model = folder / "model.safetensors"
        training_stages.train(config, FEDDEP, self.files, self.trained, self.model)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("made"))


def test_each_stage_writes_what_it_says(made: Made):
    graph = Graph.load(made.files["graph"], FEDDEP.graph_key)
    facts = json.loads(Path(made.facts["graph"]).read_text())
    assert (graph.num_nodes, facts["name"], facts["source"], facts["nodes"]) == (
        60,
        "mini",
        "synthetic",
        60,
    )
    assert facts["fingerprint"] == graph.fingerprint
    split = Split.load(made.files["split"], FEDDEP.split_key)
    assert [len(split.train), len(split.val), len(split.test)] == [36, 12, 12]
    partition = Partition.load(made.files["partition"], FEDDEP.partition_key)
    assert partition.num_clients == 2
    assert json.loads(Path(made.facts["partition"]).read_text())["clients"] == 2
    content = json.loads(made.trained.read_text())
    assert content["row"]["key"] == FEDDEP.key
    assert content["row"]["data"] == graph.fingerprint[:16]
    assert set(json.loads(content["row"]["seconds_before"])) == {
        "pretrain",
        "prototypes",
        "generator",
    }
    assert {sent["kind"] for sent in content["communication"]} >= {"prototypes", "model"}
    assert sum(sent["bytes"] for sent in content["communication"]) == content["row"]["bytes"]
    assert len(content["curve"]["round"]) == len(content["curve"]["loss"]) == 2
    weights = read_arrays(made.model, FEDDEP.key)
    assert all(np.isfinite(each).all() for each in weights.values())


OTHERS: dict[str, dict[str, Any]] = {
    "graph": {"datasets": {"mini": {"synthetic": {"signal": 0.4}}}},
    "split": {"split": {"train": 0.5, "val": 0.3}},
    "partition": {"partition": {"delta": 6}},
    "pretrain": {"methods": {"feddep": {"pretraining_epochs": 2}}},
    "generator": {"methods": {"feddep": {"generator_epochs": 2}}},
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("how", ["missing", "cut", "garbage"])
def test_a_file_that_is_missing_damaged_or_another_is_an_error_that_names_it(
    name: str, how: str, made: Made, tmp_path: Path
):
    file = tmp_path / f"{name}.safetensors"
    content = made.files[name].read_bytes()
    if how != "missing":
        file.write_bytes(content[: len(content) // 2] if how == "cut" else b"garbage")
        if (beside := made.files[name].with_suffix(".json")).is_file():
            file.with_suffix(".json").write_bytes(beside.read_bytes())
    with pytest.raises(DataError, match=re.escape(file.name)):
        training_stages.read_task(made.config, FEDDEP, {**made.files, name: file})
    # The whole file, of another configuration.
    with pytest.raises(DataError, match=re.escape(file.name)):
        training_stages.read_task(
            made.config, feddep_in(validate(merged(RAW, OTHERS[name]))), made.files
        )


def test_a_stage_that_fails_writes_nothing(made: Made, tmp_path: Path):
    # Too few for six communities.
    few = validate(merged(RAW, {"datasets": {"mini": {"synthetic": {"nodes": 8}}}}))
    with pytest.raises(FeddepError):
        stages.prepare(few, "mini", None, tmp_path / "graph.safetensors", tmp_path / "graph.json")
    with pytest.raises(DataError):
        training_stages.train(
            made.config,
            FEDDEP,
            {**made.files, "split": tmp_path / "none"},
            tmp_path / "run.json",
            tmp_path / "model",
        )
    assert list(tmp_path.iterdir()) == []


def test_a_public_graph_must_be_the_one_of_the_registry(made: Made, tmp_path: Path):
    file = tmp_path / "cora.safetensors"
    random_graph(20, 30).save(file, "key")
    with pytest.raises(DataError, match=re.escape(file.name)):
        training_stages.load_graph("cora", "key", file)
    # Nobody knows the fingerprint of this one yet.
    assert training_stages.load_graph("roman_empire", "key", file).num_nodes == 20


def test_a_graph_of_ones_own_is_read_from_its_files(tmp_path: Path):
    graph = random_graph(20, 30)
    np.savez(tmp_path / "mine.npz", **npz_arrays(graph))
    config = validate(
        {
            **RAW,
            "datasets": {"mini": {}, "mine": {"path": str(tmp_path / "mine.npz")}}
            | RAW["datasets"],
        }
    )
    file = tmp_path / "graph.safetensors"
    stages.prepare(config, "mine", None, file, tmp_path / "graph.json")
    run = one_run(config, "global", dataset="mine,labelled=0.5")
    found = [
        training_stages.load_graph("mine", run.graph_key, file),
        verification.fetch_graph(config, run.dataset, tmp_path),
    ]
    assert [each.fingerprint for each in found] == [graph.fingerprint] * 2


@pytest.mark.parametrize("kind", ["graphs", "partitions"])
def test_published_statistics_are_those_of_the_files(kind: Any, made: Made, tmp_path: Path):
    config = Config({**made.config, "records": {"directory": str(tmp_path), "use": True}})
    content = json.loads(Path(made.facts[kind.removesuffix("s")]).read_text())
    written = {name: value for name, value in content.items() if name not in ("key", "sha256")}
    files = {}
    for key in ("0123456789012345", "a" * 16):  # a key without a letter
        write_json(tmp_path / f"{key}.json", written, key)
        files[key] = str(tmp_path / f"{key}.json")
    later = {"a" * 16: files.pop("a" * 16)}
    assert data_tables.missing(config, kind, files) == files
    (before,) = data_tables.load(config, kind, files)
    assert data_tables.publish(config, kind, files) == 1
    assert data_tables.publish(config, kind, files) == 0
    gone = dict.fromkeys(files, f"{tmp_path}/none.json")
    assert data_tables.missing(config, kind, gone) == {}
    (after,) = data_tables.load(config, kind, gone)
    assert {name: after[name] for name in before} == before
    assert {
        name: json.loads(value) if isinstance(written[name], list | dict) else value
        for name, value in before.items()
    } == written

    assert data_tables.publish(config, kind, later) == 1
    assert len(pd.read_csv(tmp_path / f"{kind}.csv")) == 2
    unused = Config({**config, "records": {"directory": str(tmp_path), "use": False}})
    assert data_tables.missing(unused, kind, gone) == gone
    with pytest.raises(DataError, match=re.escape("none.json")):
        data_tables.load(unused, kind, gone)
    for content in ("", "a,b\n1,2\n"):
        (tmp_path / f"{kind}.csv").write_text(content)
        with pytest.raises(DataError, match=re.escape(f"{kind}.csv")):
            data_tables.load(config, kind, files)


def test_recorded_runs_that_fit_are_drawn(made: Made):
    """Three are planned, of which two are recorded, one of them quick."""
    config = validate(
        {**RAW, "seeds": [0, 1, 2], "records": {"directory": str(made.config["output"]) + "/some"}}
    )
    planned = plan.runs(config)
    content = json.loads(made.trained.read_text())
    recorded = [
        {**content["row"], "key": run.key, "seed": run.seed, "seconds": 10.0 * run.seed}
        for run in planned[:2]
    ]
    rows = runs.typed(pd.DataFrame(recorded, columns=list(runs.COLUMNS)))
    curves = pd.concat(
        runs.load_curves(made.config, [FEDDEP]).assign(key=key) for key in rows["key"]
    )
    runs.append(Path(config["records"]["directory"]), "quick", rows, curves)

    def drawn(asked: dict[str, Any], most: float | None = None, number: int = 1) -> list[set[int]]:
        return [
            {run.seed for run in verification.draw(config, None, asked, most, number, seed)}
            for seed in range(20)
        ]

    assert drawn({}) == drawn({})
    assert set.union(*drawn({})) == {0, 1}
    assert drawn({}, number=5) == [{0, 1}] * 20
    assert drawn({"clients": 2}, most=5) == [{0}] * 20
    for asked, study in (({"method": "fedavg"}, None), ({"seed": 2}, None), ({}, "none")):
        with pytest.raises(ConfigError):
            verification.draw(config, study, asked, None, 1, 0)
    with pytest.raises(ConfigError, match=r"nearest of 1 are mini$"):
        verification.draw(config, None, {"dataset": "mnii", "clients": 2}, None, 1, 0)


def test_a_name_without_changes_is_of_all_its_variants():
    blocks = [
        {"datasets": {"mini": {"labelled": [0.1, 0.2]}, "cora": {}}, "seeds": [3]},
        {"datasets": {"mini": {}}, "methods": {"feddep": {"prototypes": [5, 6]}}, "seeds": [4]},
    ]
    study = {"name": "some", "kind": "sweep", "runs": [{"settings": {"quick": {}}, **blocks[0]}]}
    study["runs"].append({"settings": {"quick": {}}, **blocks[1]})
    config = validate({**RAW, "clients": [2], "studies": [study]})

    def seeds(**asked: Any) -> list[int]:
        return [run.seed for run in verification.planned(config, "some", asked)]

    assert seeds() == [3, 3, 3, 4, 4]
    assert seeds(dataset="mini") == [3, 3, 4, 4]
    assert seeds(dataset="mini,labelled=0.1") == seeds(dataset="cora") == [3]
    assert seeds(method="feddep", seed=4) == [4, 4]
    assert seeds(method="feddep,prototypes=5") == [4]
    assert seeds(dataset="min") == []


@pytest.fixture(scope="module")
def anew(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Config:
    """What reads the run, trained anew."""
    return verification.Trainer(made.config, tmp_path_factory.mktemp("anew")).record(FEDDEP)


def edited(
    made: Made, folder: Path, row: dict[str, Any] | None = None, curve: dict[str, Any] | None = None
) -> Config:
    """Of a table that has the run, with some cells of its row or of its curves changed."""
    rows = runs.typed(runs.load(made.config, [FEDDEP]).assign(**row or {}))
    curves = runs.load_curves(made.config, [FEDDEP]).assign(**curve or {})
    runs.append(folder, "quick", rows, curves)
    return Config({**made.config, "records": {"directory": str(folder), "use": True}})


@pytest.mark.parametrize(
    "changes",
    [
        *({name: 0.123} for name, kind in runs.COLUMNS.items() if kind == "float64"),
        *({name: math.nan} for name in ("test", "validation_last", "global_validation")),
        *({name: math.nan} for name in ("local_before", "local_after", "local_after_last")),
        {"best_round": "[1, 2]"},
        {"client_accuracies": "[0.5, 0.5]"},
        {"stalled": False},
        {"bytes": 8, "bytes_by_kind": '{"model": 8}'},
        {"data": "0" * 16},
        {"parameters": None},
        {"split": "class_balanced"},
    ],
    ids=str,
)
def test_a_changed_cell_of_a_row_is_found(
    changes: dict[str, Any], made: Made, anew: Config, tmp_path: Path
):
    off = verification.differences(edited(made, tmp_path, changes), anew, FEDDEP)
    assert off.keys() == changes.keys() - {"seconds"}


@pytest.mark.parametrize(
    "changes",
    [{"loss": [1.0, 2.0]}, {"test": math.nan}, {"validation": [math.nan, 0.5]}],
    ids=str,
)
def test_a_changed_curve_is_found(
    changes: dict[str, Any], made: Made, anew: Config, tmp_path: Path
):
    off = verification.differences(edited(made, tmp_path, None, changes), anew, FEDDEP)
    assert off.keys() == {f"curve of {name}" for name in changes}


def test_early_records_lack_what_was_not_measured_then(made: Made, anew: Config, tmp_path: Path):
    local = [name for name in runs.COLUMNS if name.startswith(("local_", "global_validation"))]
    curves = {"local_before": math.nan, "local_after": math.nan}
    config = edited(made, tmp_path, dict.fromkeys(local, math.nan), curves)
    assert verification.differences(config, anew, FEDDEP) == {}


def test_a_run_comes_back_or_not(made: Made, tmp_path: Path):
    test = runs.load(made.config, [FEDDEP])["test"].item()
    rounding = edited(made, tmp_path / "off", {"test": test + 0.001})
    assert len(list(verification.verify(made.config, [FEDDEP], tmp_path, 0))) == 1
    assert len(list(verification.verify(rounding, [FEDDEP], tmp_path, 0.01))) == 1
    with pytest.raises(DataError):
        list(verification.verify(rounding, [FEDDEP], tmp_path, 0.0001))


@pytest.mark.parametrize("method", ["local", "fedavg", "global"])
def test_a_run_that_owners_judge_comes_back(method: str, made: Made, tmp_path: Path):
    """Its split is the partition's, its shares are its dataset's; a model that stays with its owner
    has no global accuracy.
    """
    run = one_run(
        made.config,
        method,
        2,
        setting="quick,encoder=gcn,full_batch=true,evaluation=owners",
        dataset="mini",
        split="within_clients,train=0.3",
    )
    files = {name: made.files[name] for name in ("graph", "partition")}
    output = runs.cached(made.config, run.key)
    training_stages.train(made.config, run, files, output, tmp_path / "model.safetensors")
    assert pd.isna(runs.load(made.config, [run])["test"].item()) == (method == "local")
    anew = verification.Trainer(made.config, tmp_path).record(run)
    assert verification.differences(made.config, anew, run) == {}
