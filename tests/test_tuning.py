"""Methods that are compared with hyperparameters of their own: the search of a study, in one
process.
"""

import importlib.metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from feddep import api, cli, leaderboard, tuning
from feddep.config import variants
from feddep.config.loading import validate
from feddep.experiment import plan
from feddep.experiment.verification import Trainer
from feddep.reporting import output, studies
from feddep.utils.errors import ConfigError, DataError
from feddep.utils.files import read_json
from graphs import npz_arrays, random_graph

QUICK = {"rounds": 2, "hidden_channels": 16, "batch_size": 8}
PLUGIN = '''
from functools import partial
from feddep.methods.basic import fedavg
from feddep.methods.method import ANY_ENCODER, Method
from feddep.utils.parameters import Parameters, Share
from feddep.utils.spaces import linear

class MineParameters(Parameters):
    own: Share = 0.5
    """nothing"""

def run(task, parameters, steps):
    return fedavg.train_on(task, task.subgraphs())

METHODS = (
    Method("mine", "Mine", MineParameters, f"{__name__}:run", encoders=ANY_ENCODER,
           full_batch=True, search={"own": linear(0, 1)}, as_fedavg={"own": 0.0}),
)
'''


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    np.savez(tmp_path / "graph.npz", **npz_arrays(random_graph(60, 150)))
    return tmp_path / "graph.npz"


def config_of(graph_file: Path, trials: int = 3, **changes: Any) -> Any:
    given = {"clients": 2, "seeds": 2, "setting": QUICK, "device": "cpu", **changes}
    methods = ["fedavg", "fedprox"]
    return tuning.configuration(
        methods, str(graph_file), graph_file.parent / "out", trials, **given
    )


@pytest.mark.slow
def test_it_is_a_search_and_goes_on(graph_file: Path, monkeypatch: pytest.MonkeyPatch):
    config, trained, stops = config_of(graph_file), list[plan.Run](), [8]

    def interrupted(trainer: Trainer, run: plan.Run) -> Any:
        if stops and len(trained) == stops[0]:
            raise InterruptedError(stops.pop())
        trained.append(run)
        return train(trainer, run)

    train = Trainer.train
    monkeypatch.setattr(Trainer, "train", interrupted)
    with pytest.raises(InterruptedError):
        tuning.compare(config)
    page = tuning.compare(config_of(graph_file))
    stages = plan.stages(config, tuning.STUDY)
    assert [len(stage) for stage in stages] == [8, 16, 6]
    assert trained == [run for stage in stages for run in stage]
    folder = graph_file.parent / "out"
    assert (folder / "page.md").read_text() == page
    assert len(pd.read_csv(folder / "choices.csv")) == 3
    table = pd.read_csv(folder / "table.csv")
    assert table["method"].to_list() == ["fedavg", "fedprox", "fedavg"]
    # The reference, tuned again, is compared with itself.
    assert table["mean_difference"].isna().to_list() == [True, False, False]
    assert table["configuration"].to_list() == [plan.HERE, plan.HERE, plan.AGAIN]
    noise = table["mean"][2] - table["mean"][0]
    assert table["mean_difference"][2] == pytest.approx(noise, abs=1e-5)
    assert f"{abs(noise):.4f}" in page


@pytest.mark.slow
def test_the_command_and_a_method_of_ones_own(graph_file: Path, capsys: pytest.CaptureFixture[str]):
    plugin, folder = graph_file.parent / "mine.py", graph_file.parent / "out"
    plugin.write_text(PLUGIN)
    given = ["compare", "fedavg", str(plugin), "--graph", str(graph_file), "--clients", "2"]
    given += ["--seeds", "2", "--tuned", "3", "--output", str(folder), "--device", "cpu"]
    given += [word for key, value in QUICK.items() for word in ("--set", f"{key}={value}")]
    before = torch.get_num_threads()
    assert cli.main([*given, "--threads", str(before + 1)]) in (0, None)
    assert torch.get_num_threads() == before
    for file in (folder / ".cache" / "runs").glob("*.json"):
        assert read_json(file)["row"]["machine"].endswith(f"{before + 1} threads")
    assert "Mine" in capsys.readouterr().out
    table = pd.read_csv(folder / "table.csv").set_index("method")
    assert table.index.to_list() == ["fedavg", "mine", "fedavg"]
    assert table["mean"].between(0, 1).all()
    # The same call in Python finds all of it.
    options: dict[str, Any] = {"setting": QUICK, "device": "cpu", "tuned": 3}
    again = {"output": folder / "runs.csv"}
    found = api.compare(["fedavg", plugin], graph_file, 2, 2, **options, **again)
    means = found.groupby(["configuration", "method"])["test"].mean()
    assert means[plan.HERE, "mine"] == pytest.approx(table.loc["mine", "mean"], abs=1e-5)
    assert means[plan.AGAIN].index.to_list() == ["fedavg"]
    for refused in ({}, {"parameters": {"own": 1.0}, **again}):
        with pytest.raises(ConfigError, match="tuned"):
            api.compare(["fedavg", plugin], graph_file, 2, 2, **options, **refused)


@pytest.mark.slow
def test_out_of_the_box_is_what_a_recorded_search_chose(
    graph_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    graphs = {"one": 1, "two": 2}
    for name, seed in graphs.items():
        np.savez(tmp_path / f"{name}.npz", **npz_arrays(random_graph(60, 150, seed=seed)))
    search = {"setting": "global", "datasets": [*graphs], "methods": ["fedavg", "fedper"]}
    search |= {"clients": 2, "trials": 3, "seeds": [0, 1]}
    raw = {
        **{"output": "results", "records": {"directory": "runs"}, "device": "cpu", "seeds": [0]},
        "datasets": {name: {"path": f"{name}.npz"} for name in graphs},
        "clients": [2],
        "settings": {"global": {"rounds": 2, "batch_size": 8}},
        "tables": [{"setting": "global", "methods": ["fedavg"]}],
        "studies": [{"name": tuning.STUDY, "kind": "searched", "search": search}],
    }
    config = validate(raw)
    leaderboard.search(config, tuning.STUDY, tmp_path)
    contents = studies.contents(config, tuning.STUDY)
    table = contents["table.csv"].set_index(["dataset", "configuration", "method"])
    for name in graphs:
        assert table.loc[name].index.get_level_values(0).to_list() == [
            *([plan.HERE] * 2),
            plan.AGAIN,
            *([plan.ELSEWHERE] * 2),
        ]
    # Out of the box it is compared with the reference out of the box.
    gain = table.loc[("one", plan.ELSEWHERE, "fedper")]
    mean = table.loc[("one", plan.ELSEWHERE, "fedavg"), "mean"]
    assert gain["mean_difference"] == pytest.approx(gain["mean"] - mean)

    choices = plan.choices(config, tuning.STUDY)
    output.write(tmp_path / "results" / "found", {"choices.csv": choices})
    few: dict[str, Any] = {"clients": 2, "seeds": 1, "setting": {"rounds": 2}, "device": "cpu"}
    runs = api.compare(["fedper", "local"], graph_file, **few, output=tmp_path / "runs.csv")
    assert runs["configuration"].to_list() == [plan.ELSEWHERE, tuning.DEFAULTS]
    rows = choices.set_index(["dataset", "method", "configuration"])["chosen_setting"]
    _, changes = variants.read(rows["", "fedper", plan.ELSEWHERE])
    setting = {**changes, **few["setting"]}
    by_hand = api.compare("fedper", graph_file, **{**few, "setting": setting}, defaults=True)
    assert by_hand["configuration"].to_list() == [tuning.DEFAULTS]
    assert by_hand["test"].to_list() == runs["test"][:1].to_list()
    told = read_json(tmp_path / "runs.provenance.json")
    assert told["comparison"]["out_of_the_box"]["fedper"][0] == changes
    assert told["packages"]["torch"] == importlib.metadata.version("torch")
    with pytest.raises(DataError, match=r"runs\.csv"):
        api.compare("local", graph_file, **few, output=tmp_path / "runs.csv")


def test_the_reference_that_is_recorded_is_named():
    assert "0.844" in tuning.recorded_reference("cora", "field", None)
    assert "0.844" in tuning.recorded_reference("cora", "field", 10)
    for other in (("cora", "field", 7), ("cora", "global", None), ("nowhere", "field", 9)):
        assert tuning.recorded_reference(*other) == ""


def test_arguments_are_those_of_the_protocol(graph_file: Path):
    config = config_of(graph_file, protocol="field", clients=None, setting={"rounds": 3})
    (first, *_), *_ = plan.stages(config, tuning.STUDY)
    assert (first.clients, first.setting.options["rounds"]) == (10, 3)
    assert first.setting.options["evaluation"] == "owners"
    assert first.split.options["method"] == "within_clients"
    public = tuning.configuration(["fedavg"], "cora", Path("out"), 4, features="row")
    assert public["datasets"]["cora"]["features"] == "row"
    assert plan.stages(public, tuning.STUDY)[0][0].dataset.name == "cora"
    with pytest.raises(ConfigError, match="trials"):
        config_of(graph_file, trials=1)
