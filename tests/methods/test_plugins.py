"""Methods and encoders of one's own: known by name, their content in keys, and every mistake a
configuration error.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from feddep import api
from feddep.cli import main
from feddep.config.loading import validate
from feddep.experiment import plan, steps
from feddep.experiment.plan import one_run
from feddep.methods import plugins, registry
from feddep.utils.errors import ConfigError, DataError, PartitionError
from feddep.utils.files import read_json

RAW: dict[str, Any] = {
    "datasets": {
        "mini": {"synthetic": {"nodes": 60, "classes": 3, "communities": 6, "features": 30}}
    },
    "tables": [{"setting": "quick", "methods": ["fedavg", "mine"]}],
    **{"clients": [2], "seeds": [0], "settings": {"quick": {"rounds": 1, "hidden_channels": 8}}},
    "partition": {"delta": 5},
    "methods": {"fedavg": {}, "mine": {}},
}
GRAPH = api.synthetic_graph(nodes=60, classes=3, communities=6, features=30)
ALONE = [{"setting": "quick", "methods": ["fedavg"]}]
MINE = """
from feddep.methods.basic import NoParameters, fedavg
from feddep.methods.method import ANY_ENCODER, Method


def run(task, parameters, steps):
    return fedavg.run(task)


METHODS = (Method("mine", "Mine", NoParameters, f"{__name__}:run", encoders=ANY_ENCODER),)
"""
WITH_STEPS = """
from feddep.methods.feddep import PRETRAINING, FedDEPParameters
from feddep.methods.method import Method, Step, StepResult
from feddep.utils.parameters import Parameters

OWN = Step("mine.prototypes", "prototypes", f"{__name__}:compute", Parameters, needs=("pretrain",))
METHODS = (Method("mine", "Mine", FedDEPParameters, f"{__name__}:run", steps=lambda parameters:
(PRETRAINING, OWN)),)


def run(task, parameters, steps):
    raise NotImplementedError
"""
ENCODER = """
from torch_geometric.nn.models import GIN


class Wide(GIN):
    def __init__(self, features, hidden, *arguments, **options):
        super().__init__(features, 2 * hidden, *arguments, **options)


ENCODERS = {"wide": Wide}
"""

PARTITIONER = """
import numpy as np

PARTITIONERS = {"alternate": lambda graph, clients, seed: np.arange(graph.num_nodes) % clients}
"""


@pytest.fixture(autouse=True)
def folder(no_plugins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def using(text: str, file: str = "mine.py", **changes: Any) -> Any:
    """A configuration with a plugin of that text."""
    Path(file).write_text(text)
    return validate({**RAW, "plugins": [file], **changes})


def differing(text: str, **changes: Any) -> list[bool]:
    """Which keys of a run another text of a plugin changes: its own, and those of its partition,
    split and graph.
    """
    found = []
    for each in (text, f"{text}# changed\n"):
        run = one_run(using(each, methods={}, tables=ALONE, **changes), "fedavg", 2)
        found.append((run.key, run.partition_key, run.split_key, run.graph_key))
    return [one != other for one, other in zip(*found, strict=True)]


def run(method: str, **setting: Any) -> api.Result:
    division = api.split(GRAPH), api.partition(GRAPH, 2, delta=5)
    return api.run(method, GRAPH, *division, setting={"rounds": 1, "hidden_channels": 8, **setting})


def test_a_method_of_a_file_is_one_of_the_others() -> None:
    config = using(MINE)
    assert list(registry.methods()) == sorted([*registry.built_in(), "mine"])
    assert one_run(config, "mine", 2) in plan.runs(config)
    mine, fedavg = run("mine"), run("fedavg")
    assert mine.history.equals(fedavg.history)
    assert set(mine.specification["plugin"]) == {"sha256"}
    assert "plugin" not in fedavg.specification


def test_the_content_of_the_file_is_in_the_key_and_its_place_is_not() -> None:
    config = using(MINE)
    first = one_run(config, "mine", 2).key
    Path("elsewhere").mkdir()
    assert one_run(using(MINE, "elsewhere/other.py"), "mine", 2).key == first
    assert one_run(using(f"{MINE}# changed\n"), "mine", 2).key != first
    assert one_run(using(MINE), "mine", 2).key == first
    alone = validate({**RAW, "methods": {}, "tables": ALONE})
    assert one_run(config, "fedavg", 2).key == one_run(alone, "fedavg", 2).key


def test_a_step_of_the_benchmark_is_shared_and_one_of_the_plugin_is_not() -> None:
    pretraining, own = steps.step_jobs(one_run(using(WITH_STEPS), "mine", 2))
    shared, *_ = steps.step_jobs(one_run(using(WITH_STEPS), "feddep", 2))
    assert pretraining.key == shared.key
    again, changed = steps.step_jobs(one_run(using(f"{WITH_STEPS}#"), "mine", 2))
    assert again.key == pretraining.key
    assert changed.key != own.key


def test_an_encoder_of_a_file() -> None:
    name = {"encoder": "wide"}
    settings = {
        "settings": {"quick": {"rounds": 1, "hidden_channels": 8, **name}},
        "methods": {},
        "tables": ALONE,
    }
    first = one_run(using(ENCODER, "wide.py", **settings), "fedavg", 2).key
    result = run("fedavg", **name)
    assert result.weights["model.convs.0.nn.lins.0.weight"].shape == (16, 30)
    assert set(result.specification["encoder"]) == {"sha256"}
    changed = using(f"{ENCODER}# changed\n", "wide.py", **settings)
    assert one_run(changed, "fedavg", 2).key != first
    for method, unknown in [("fedavg", "narrow"), ("feddep", "wide"), ("moon", "wide")]:
        with pytest.raises(ConfigError):
            run(method, encoder=unknown, full_batch=method == "moon")


def test_a_partitioner_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    division = {"method": "alternate"}
    assert differing(PARTITIONER, partition=division) == [True, True, False, False]
    found = api.partition(GRAPH, 3, method="alternate")
    assert found.client.tolist() == [0, 1, 2] * 20
    assert found.num_clients == 3
    torch.save(api.to_pyg(GRAPH), "graph.pt")
    arguments = ["run", "fedavg", "--graph", "graph.pt", "--clients", "2", "--seeds", "1"]
    arguments += ["--set", "rounds=1", "--plugin", "mine.py"]
    assert main([*arguments, "--partition", "alternate"]) == 0
    assert main([*arguments, "--partition", "alternately"]) == 1
    assert "alternate" in capsys.readouterr().err
    Path("mine.py").write_text(PARTITIONER.replace("% clients", "// 60"))
    api.load_plugin("mine.py")
    with pytest.raises(PartitionError):  # a client without nodes
        api.partition(GRAPH, 3, method="alternate")


def test_a_split_of_a_file() -> None:
    halves = "SPLITTERS = {'halves': lambda graph, shares, seed: ([0, 1, 2, 3], [4, 5], [6, 7])}"
    method = {"method": "halves"}
    assert differing(halves, split=method) == [True, False, True, False]
    assert api.split(GRAPH, method="halves").test.tolist() == [6, 7]
    using(halves.replace("[4, 5]", "[3, 5]"), methods={}, tables=ALONE)
    with pytest.raises(DataError):  # a node in two sets
        api.split(GRAPH, method="halves")


def test_a_reader_of_a_file() -> None:
    GRAPH.save("mine.stored")
    reader = "from feddep.graph.graph import Graph\n\nREADERS = {'stored': Graph.load}\n"
    with pytest.raises(DataError):
        api.load_graph("mine.stored")
    assert all(differing(reader, datasets={"own": {"path": "mine.stored"}}))
    assert api.load_graph("mine.stored").fingerprint == GRAPH.fingerprint


def test_a_function_that_divides(tmp_path: Path) -> None:
    def alternate(graph: api.Graph, clients: int, seed: int) -> Any:
        return (np.arange(graph.num_nodes) + seed) % clients

    def compared(**how: Any) -> pd.DataFrame:
        rounds = {"rounds": 2, "hidden_channels": 8}
        return api.compare(["fedavg"], GRAPH, 2, 2, setting=rounds, **how).drop(columns="seconds")

    found = compared(partition=alternate, output=tmp_path / "runs.csv")
    using(
        PARTITIONER.replace("np.arange(graph.num_nodes)", "(np.arange(graph.num_nodes) + seed)"),
        methods={},
        tables=ALONE,
    )
    assert found.equals(compared(partition="alternate"))
    given = read_json(tmp_path / "runs.provenance.json")["comparison"]["partition"]
    assert len(set(given)) == 2
    with pytest.raises(DataError):  # another comparison
        compared(partition=lambda *given: alternate(*given)[::-1], output=tmp_path / "runs.csv")
    with pytest.raises(PartitionError):
        compared(partition=lambda graph, clients, seed: [0])


WRONG = {
    "nothing": "",
    "a list": "METHODS = ['mine']",
    "a number": "METHODS = 3",
    "a name": "METHODS = ('mine',)",
    "a syntax error": "def",
    "a null byte": "\x00",
    "a missing package": "import nosuchmodule",
    "an error": "1 / 0",
    "an error of two lines": "raise ValueError('one\\ntwo')",
    "a name that is taken": MINE.replace('"mine"', '"fedavg"'),
    "a function of two arguments": MINE.replace(", steps)", ")"),
    "a function of four arguments": MINE.replace(", steps)", ", steps, more)"),
    "a function that is not there": MINE.replace(":run", ":ran"),
    "a function that is a number": MINE.replace("METHODS", "run = 3\nMETHODS"),
    "a function of no module": MINE.replace('f"{__name__}:run"', '"run"'),
    "encoders without names": "ENCODERS = (int,)",
    "an encoder that is a number": "ENCODERS = {'mine': 3}",
    "an encoder without a name": "ENCODERS = {'': int}",
    "an encoder whose name is taken": "ENCODERS = {'sage': int}",
    "a split whose name is taken": "SPLITTERS = {'masks': int}",
    "a reader whose ending is taken": "READERS = {'npz': int}",
    "a kind without its parts": "KINDS = {'mine': int}",
}


@pytest.mark.parametrize("wrong", [*WRONG, "no file", "a folder", "a pipe"])
def test_what_is_wrong_with_a_file_is_a_configuration_error(wrong: str) -> None:
    using(MINE, "good.py")
    before = registry.methods()
    if wrong in WRONG:
        Path("mine.py").write_text(WRONG[wrong])
    elif wrong == "a folder":
        Path("mine.py").mkdir()
    elif wrong == "a pipe":
        os.mkfifo("mine.py")
    with pytest.raises(ConfigError) as caught:
        validate({**RAW, "plugins": ["mine.py"]})
    assert "mine.py" in str(caught.value)
    assert str(caught.value).isprintable()
    assert registry.methods() == before


def test_a_changed_file_takes_the_place_of_what_it_was() -> None:
    using(MINE)
    using(
        MINE.replace('"mine"', '"other"'),
        methods={},
        tables=[{"setting": "quick", "methods": ["other"]}],
    )
    assert set(registry.methods()) - set(registry.built_in()) == {"other"}


def test_two_files_cannot_take_one_name() -> None:
    Path("other.py").write_text(f"{MINE}# another\n")
    using(MINE)
    with pytest.raises(ConfigError, match="mine"):
        validate({**RAW, "plugins": ["mine.py", "other.py"]})


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield tmp_path / "site"
    for name in ("my_package", "my_package.mine"):
        sys.modules.pop(name, None)


def distribution(folder: Path, version: str, module: str) -> None:
    """What an installed distribution leaves in a folder."""
    (folder / "my_package").mkdir(parents=True)
    (folder / "my_package" / "__init__.py").write_text("")
    (folder / "my_package" / "mine.py").write_text(module)
    information = folder / "my_package-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: my-package\nVersion: {version}\n"
    )
    (information / "entry_points.txt").write_text("[feddep.methods]\nmine = my_package.mine\n")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_installed_distribution_is_known_by_its_version(version: str, site: Path) -> None:
    distribution(site, version, MINE + PARTITIONER)
    assert api.partition(GRAPH, 3, method="alternate").client.tolist() == [0, 1, 2] * 20
    config = validate(RAW)
    mine = one_run(config, "mine", 2)
    assert mine in plan.runs(config)
    assert plugins.identity_of("mine") == {
        "plugin": {"distribution": "my-package", "version": version}
    }
    assert mine.key != one_run(config, "fedavg", 2).key
    assert api.methods()["mine"] == "Mine"


@pytest.mark.parametrize("module", ["import nosuchmodule", "", "METHODS = 3"])
def test_a_wrong_distribution_is_a_configuration_error(module: str, site: Path) -> None:
    distribution(site, "1.0", module)
    for _ in range(2):  # it is not forgotten
        with pytest.raises(ConfigError, match="my-package"):
            validate(RAW)


@pytest.mark.parametrize(
    "returned",
    [
        "None",
        "{}",
        "RunResult(History())",
        "fedavg.run(dataclasses.replace(task, setting=task.setting.replace(rounds=9)))",
    ],
)
def test_what_is_wrong_with_a_result_is_an_error_of_its_method(returned: str) -> None:
    imports = (
        "import dataclasses\n"
        "from feddep.training.history import History\nfrom feddep.training.task import RunResult\n"
    )
    using(imports + MINE.replace("fedavg.run(task)", returned))
    with pytest.raises(ConfigError, match="mine"):
        run("mine")


@pytest.mark.parametrize("returned", ["None", "'much'"])
def test_local_steps_without_a_loss_are_an_error_of_their_client(returned: str) -> None:
    client = f"""
class Silent(Client):
    def train(self):
        super().train()
        return {returned}


def run"""
    text = MINE.replace("\ndef run", client)
    call = "train_on(task, task.subgraphs(), Silent)"
    using("from feddep.federation.client import Client\n" + text.replace("run(task)", call))
    with pytest.raises(ConfigError, match="Silent"):
        run("mine")
