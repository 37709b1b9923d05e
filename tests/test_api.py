"""The Python API: what its page shows works, and it computes what the methods compute."""

import doctest
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from feddep import api, comparison
from feddep.experiment.tasks import build_task
from feddep.graph.split import within_clients_split
from feddep.methods import registry
from feddep.reporting import inference
from feddep.training.summary import summary
from feddep.utils.errors import ConfigError, DataError, PartitionError

DOCS = Path(__file__).parents[1] / "docs"
SETTING = {"rounds": 2, "hidden_channels": 8}


@contextmanager
def float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def graph() -> api.Graph:
    return api.synthetic_graph(nodes=120, communities=6)


@pytest.fixture(scope="module")
def split(graph: api.Graph) -> api.Split:
    return api.split(graph)


@pytest.fixture(scope="module")
def partition(graph: api.Graph) -> api.Partition:
    return api.partition(graph, 3, delta=5)


@pytest.fixture(scope="module")
def mended(graph: api.Graph, split: api.Split, partition: api.Partition) -> api.Result:
    """A run of FedSage+, which trains models of several kinds."""
    return api.run("fedsage_plus", graph, split, partition, setting=SETTING, device="cpu")


def test_the_examples_of_the_page():
    result = doctest.testfile(
        str(DOCS / "guide" / "python.md"), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert result.attempted > 10
    assert result.failed == 0


@pytest.mark.parametrize(
    "context",
    [
        torch.no_grad(),
        torch.inference_mode(),
        torch.device("meta"),
        torch.autocast("cpu", torch.bfloat16),
        np.errstate(all="raise"),
        float64(),
    ],
    ids=["no_grad", "inference_mode", "device", "autocast", "errstate", "dtype"],
)
def test_numbers_do_not_depend_on_what_the_caller_has_set(
    context: Any,
    graph: api.Graph,
    split: api.Split,
    partition: api.Partition,
    mended: api.Result,
):
    inputs = (graph, split, partition)
    with context:
        before = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()
        found = api.run("fedsage_plus", *inputs, setting=SETTING, device="cpu", threads=2)
        assert before == (
            torch.get_default_dtype(),
            torch.is_grad_enabled(),
            torch.get_num_threads(),
        )
    pd.testing.assert_frame_equal(found.history, mended.history, rtol=1e-5)


def test_a_result_is_that_of_the_method(
    graph: api.Graph, split: api.Split, partition: api.Partition
):
    told: list[dict[str, float]] = []
    options: dict[str, Any] = {
        "setting": SETTING,
        "features": "row",
        "labelled": 0.3,
        "seed": 5,
        "device": "cpu",
    }
    result = api.run("fedavg", graph, split, partition, **options, on_round=told.append)
    assert told == result.history.to_dict("records")
    assert "fedavg" in str(result)
    method = registry.find("fedavg")
    task = build_task(result.specification, graph, split, partition, "fedavg")
    assert len(task.split.train) == 36
    np.testing.assert_allclose(task.graph.features.sum(axis=1), 1, rtol=1e-6)
    expected = method.run(task, method.parameters())
    assert result.accuracy == summary(expected)["accuracy"]
    assert result.history.to_dict("list") == summary(expected)["curve"]
    assert (result.local_before, result.local_after) == tuple(
        summary(expected)[name] for name in ("local_before", "local_after")
    )
    assert result.seconds > 0
    assert result.communication.to_dict("records") == expected.communication
    assert all(
        torch.equal(result.weights[name], tensor) for name, tensor in expected.weights().items()
    )
    assert (
        api.run("fedavg", graph, split, partition, setting=SETTING, seed=6).specification["seed"]
        == 6
    )


def test_a_partition_does_not_matter_where_there_is_none(
    graph: api.Graph, split: api.Split, partition: api.Partition
):
    runs = [api.run("global", graph, split, given, setting=SETTING) for given in (None, partition)]
    assert runs[0].history.equals(runs[1].history)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"method": "fedavgg"}, "fedavgg"),
        ({"setting": {"rounds": 0}}, "setting.rounds"),
        ({"parameters": {"mu": 1}}, "parameters.mu"),
        ({"method": "fedproxx"}, "fedprox"),
        ({"method": "fedprox", "parameters": {"nu": 1}}, "mu"),
        ({"setting": {"rouns": 1}}, "rounds"),
        ({"method": "feddep", "parameters": {"embedding": {"cora": 3}}}, "parameters.embedding"),
        ({"features": "log"}, "features"),
        ({"labelled": 0.9}, "labelled"),
        ({"device": "gpu"}, "device"),
    ],
)
def test_a_mistake_names_its_key(
    options: dict[str, Any], key: str, graph: api.Graph, split: api.Split, partition: api.Partition
):
    with pytest.raises(ConfigError, match=re.escape(key)):
        api.run(
            **{
                "method": "fedavg",
                "graph": graph,
                "split": split,
                "partition": partition,
                **options,
            }
        )


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"graph": "coraa"}, "cora"),
        ({"graph": Path("nowhere.npz")}, "nowhere.npz"),
        ({"methods": ["fedprox"], "parameters": {"muu": 1}}, "mu"),
        ({"methods": ["fedavg", "local", "fedavg"]}, "fedavg"),
        ({"protocol": "Field"}, "field"),
    ],
)
def test_a_mistake_in_a_comparison_names_what_is_near(
    options: dict[str, Any], key: str, graph: api.Graph
):
    with pytest.raises(ConfigError, match=rf"\b{re.escape(key)}\b"):
        api.compare(**{"methods": ["fedavg"], "graph": graph, "seeds": 1, **options})


def test_numbers_of_numpy_and_pytorch_are_those_of_python(
    graph: api.Graph, split: api.Split, partition: api.Partition
):
    expected = api.run(
        "fedavg",
        graph,
        split,
        partition,
        setting={**SETTING, "learning_rate": 0.25},
        labelled=0.5,
        seed=3,
    )
    for kind in (np.asarray, torch.tensor):
        setting = {
            key: kind(value) if isinstance(value, int | float) else value
            for key, value in SETTING.items()
        }
        options = {
            "setting": {**setting, "learning_rate": kind(0.25)},
            "labelled": kind(0.5),
            "seed": kind(3),
        }
        found = api.run("fedavg", graph, split, partition, **options)
        assert found.history.equals(expected.history)
        assert found.specification == expected.specification
    assert np.array_equal(api.split(graph, np.int16(7)).train, api.split(graph, 7).train)
    assert np.array_equal(
        api.partition(graph, torch.tensor(3)).client, api.partition(graph, 3).client
    )


def test_the_fields_protocol_judges_what_owners_would_use(graph: api.Graph):
    few = {"rounds": 2, "hidden_channels": 8}
    table = api.compare(["fedavg_finetuned", "fedavg"], graph, 3, 2, protocol="field", setting=few)
    assert all(row.owners in (row.local_before, row.local_after) for row in table.itertuples())
    owners = table.pivot(index="seed", columns="method", values="owners")
    found = comparison.paired(table)
    assert found["mean_difference"].item() == pytest.approx(
        (owners["fedavg"] - owners["fedavg_finetuned"]).mean()
    )
    assert "owners" not in api.compare(["fedavg"], graph, 3, 1, setting=few)


def test_a_comparison_is_paired_by_seed(graph: api.Graph):
    few = {
        "rounds": 8,
        "hidden_channels": 8,
        "encoder": "gcn",
        "full_batch": True,
        "evaluation": "owners",
        "learning_rate": 0.05,
    }
    table = api.compare(["local", "fedavg"], graph, 3, 4, setting=few)
    wide = table.pivot(index="seed", columns="method", values="owners")
    expected = inference.t_test(wide["fedavg"] - wide["local"])
    assert expected["low"] < expected["high"]
    assert comparison.paired(table)["low"].item() == pytest.approx(expected["low"])
    late = table.assign(unfinished=True, stalled=False)
    assert comparison.paired(late)["verdict"].item() == "unfinished"
    assert comparison.table(late).count(" all ") == 2


def test_a_split_within_clients_is_that_of_the_clients(graph: api.Graph, partition: api.Partition):
    found = api.split(graph, 3, 0.2, 0.4, 0.4, method="within_clients", partition=partition)
    expected = within_clients_split(graph, partition, {"train": 0.2, "val": 0.4}, 3)
    assert all(
        np.array_equal(getattr(found, part), getattr(expected, part))
        for part in ("train", "val", "test")
    )
    owners = api.partition(graph, 3)
    by_hand = api.run(
        "local",
        graph,
        api.split(graph, method="within_clients", partition=owners),
        owners,
        setting=SETTING,
    )
    table = api.compare(
        ["local", "global"], graph, clients=3, seeds=1, split="within_clients", setting=SETTING
    )
    assert table["test"].iloc[0] == by_hand.accuracy["best"]


def test_a_comparison_takes_a_split_and_a_partition(
    graph: api.Graph, split: api.Split, partition: api.Partition
):
    table = api.compare("local", graph, seeds=2, split=split, partition=partition, setting=SETTING)
    by_hand = [api.run("local", graph, split, partition, setting=SETTING, seed=k) for k in (0, 1)]
    assert table["test"].to_list() == [result.accuracy["best"] for result in by_hand]
    assert table["unfinished"].to_list() == [result.unfinished for result in by_hand]
    own = api.compare("local", graph, seeds=1, partition=partition, setting=SETTING)
    drawn = api.run("local", graph, api.split(graph), partition, setting=SETTING)
    assert own["test"].item() == drawn.accuracy["best"]


@pytest.mark.parametrize(
    "wrong", ["3", 1.5, True, -1, 2**63, None, torch.tensor(1.0), np.array([1])]
)
def test_what_is_no_seed(wrong: Any, graph: api.Graph, split: api.Split):
    for call in (
        api.split,
        lambda graph, seed: api.partition(graph, 2, seed),
        lambda graph, seed: api.partition(graph, seed),
    ):
        with pytest.raises(ConfigError):
            call(graph, wrong)
    with pytest.raises(ConfigError, match="seed"):
        api.run("global", graph, split, setting=SETTING, seed=wrong)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            lambda other, split, partition: api.run("fedavg", other, api.split(other)),
            PartitionError,
        ),
        (lambda other, split, partition: api.run("fedavg", other, split, partition), DataError),
        (
            lambda other, split, partition: api.run("fedavg", other, api.split(other), partition),
            PartitionError,
        ),
        (lambda other, split, partition: api.client_data(other, partition), PartitionError),
    ],
)
def test_parts_of_another_graph(
    call: Any, error: type[Exception], split: api.Split, partition: api.Partition
):
    with pytest.raises(error):
        call(api.synthetic_graph(nodes=60, communities=6), split, partition)


def test_sets_and_owners_by_hand(graph: api.Graph, split: api.Split, partition: api.Partition):
    """Masks, lists and tensors say the same as ids."""
    masks = [torch.zeros(120, dtype=torch.bool) for _ in range(3)]
    for mask, part in zip(masks, (split.train, split.val, split.test), strict=True):
        mask[part] = True
    lists = [part[::-1].tolist() for part in (split.train, split.val, split.test)]
    owners = api.Partition(torch.from_numpy(partition.client.astype(np.int32)), 3)
    expected = api.run("fedavg", graph, split, partition, setting=SETTING).history
    for given in (
        api.Split(*masks),
        api.Split(*(mask.numpy() for mask in masks)),
        api.Split(*lists),
    ):
        assert api.run("fedavg", graph, given, owners, setting=SETTING).history.equals(expected)
    assert len(api.client_data(graph, owners, api.Split(*masks))) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            {"train": train}
            for train in ([], [0.5], [-1, 3], [3, 120], [3, 3], [[3], [4]], [True] * 119, ["3"], 3)
        ),
        {"val": [7], "test": [7, 8]},
    ],
)
def test_a_split_that_is_none_of_the_graph(wrong: dict[str, Any], graph: api.Graph):
    given = api.Split(**{"train": [0, 1], "val": [4], "test": [5], **wrong})
    with pytest.raises(DataError, match=r"split\."):
        api.run("global", graph, given, setting=SETTING)


@pytest.mark.parametrize(
    ("client", "clients"),
    [
        ([0, 1] * 60, 3),
        ([0, 1] * 60, 1),
        ([-1, 0] * 60, 1),
        ([0, 1] * 59, 2),
        ([0.0, 1.0] * 60, 2),
        ([[0], [1]] * 60, 2),
    ],
)
def test_a_partition_that_is_none_of_the_graph(
    client: list[Any], clients: int, graph: api.Graph, split: api.Split
):
    with pytest.raises(PartitionError, match="client"):
        api.run("fedavg", graph, split, api.Partition(np.array(client), clients), setting=SETTING)


@pytest.mark.parametrize(
    ("call", "key"),
    [
        (lambda graph: api.partition(graph, 3, method="spectral"), "partition.method"),
        (lambda graph: api.load_dataset("corra"), "corra"),
        (lambda graph: api.synthetic_graph(node=3), "synthetic.node"),
    ],
)
def test_a_mistake_in_data_names_its_key(call: Any, key: str, graph: api.Graph):
    with pytest.raises(ConfigError, match=re.escape(key)):
        call(graph)
