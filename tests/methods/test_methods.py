"""Every method: it learns, it is a function of its seed, and nothing raw leaves a client."""

import dataclasses
import functools
import sys
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import feddep.methods
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import Client
from feddep.federation.communication import CommunicationLog
from feddep.federation.server import Server
from feddep.graph.split import Split
from feddep.methods import registry
from feddep.methods.basic.fedavg import new_client
from feddep.methods.method import ANY_ENCODER
from feddep.training.evaluation import mean_losses
from feddep.training.summary import summary
from feddep.training.task import RunResult
from feddep.utils.errors import Notice, PartitionError
from method_tasks import (
    CLIENTS,
    ROUNDS,
    Message,
    few_epochs,
    observed,
    reachable,
    run_on,
    same_runs,
    task_of,
    train,
)

NAMES = list(registry.methods())
JUDGED_BY_ITSELF = [
    *("adafgl", "answers_bayes", "answers_counts", "fedavg", "feddep", "fedgcn", "fedsage_plus"),
    *("fedstruct", "fedtgp", "gap", "global", "local", "locsage_plus", "vesper_gin"),
]
"""A method of each way to make the predictions that are judged."""


@functools.cache
def learned(name: str) -> tuple[RunResult, list[Message]]:
    """A method's run, and all that crosses."""
    return observed(task_of(name), name)


@pytest.mark.parametrize("name", NAMES)
def test_it_learns(name):
    outcome, task = learned(name)[0], task_of(name)
    chance = np.bincount(task.graph.labels).max() / task.graph.num_nodes
    (judged,) = outcome.history.judged
    assert all(len(values) == ROUNDS for values in outcome.curve.values())
    first, last = (mean_losses(outcome.history.losses[k], judged.history.together) for k in (0, -1))
    assert all(after < before for before, after in zip(first, last, strict=True))
    assert np.mean(judged.on_graph(judged.rounds)) > chance + 0.1


@pytest.mark.parametrize("name", ["fedavg", "fedgraph", "global", "local", "vesper_gin"])
def test_it_is_a_function_of_its_seed(name):
    """A loop of rounds each; tests/golden has the numbers of every method."""
    first, again, other = learned(name)[0], train(name), train(name, seed=1)
    assert same_runs(first, again)
    assert first.curve["loss"] != other.curve["loss"]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_raw_crosses_the_boundary(name):
    """Everything that is counted is observed, and searched for rows of features, edges and labels
    of the client's own.
    """
    outcome, crossed = learned(name)
    seen = CommunicationLog()
    for client, direction, kind, payload in crossed:
        size = sum(tensor.numel() * tensor.element_size() for tensor in payload.values())
        seen.count(client, direction, kind, size)
    assert outcome.communication == seen.rows()
    graph = task_of(name).graph
    rows = {row.tobytes() for row in graph.features.toarray() if np.count_nonzero(row) > 1}
    for label, tensor in (
        (f"{each.kind}.{key}", tensor) for each in crossed for key, tensor in each.payload.items()
    ):
        assert tensor.is_floating_point(), label
        if tensor.ndim:
            for axis in range(tensor.ndim):
                lines = (
                    tensor.movedim(axis, -1)
                    .reshape(-1, tensor.shape[axis])
                    .numpy()
                    .astype(np.float32)
                )
                assert not any(line.tobytes() in rows for line in lines), (
                    f"{label} holds a row of features"
                )
            whole = tensor == tensor.round()
            # Degrees of nodes with neighbours elsewhere are told as what they are.
            assert label == "degrees.degrees" or not (whole.all() and tensor.abs().max() > 1), (
                f"{label} looks like node ids, labels or counts"
            )


def test_the_server_holds_no_way_to_the_clients_data():
    task = task_of("fedavg")
    model = task.new_model()
    boundary = Boundary({"model": schema_of(model), "training": {"nodes": (), "loss": ()}})
    server = Server(model.state_dict())
    clients = [new_client(task, i, part, boundary) for i, part in enumerate(task.subgraphs())]
    for client in clients:
        client.load(server.weights)
    updates = [client.update() for client in clients]
    server.aggregate(updates)

    kinds = {type(item) for item in reachable([server, updates, boundary])}
    assert kinds.isdisjoint({Client, Split, type(task.graph), np.ndarray})
    # The search does find what is there.
    assert type(task.graph) in {type(item) for item in reachable(clients)}


def test_fedavg_counts_exactly_what_it_sends():
    outcome = learned("fedavg")[0]
    size = 4 * sum(tensor.numel() for tensor in outcome.weights().values())
    for client in range(CLIENTS):
        rows = {
            (row["direction"], row["kind"]): row
            for row in outcome.communication
            if row["client"] == client
        }
        assert rows["down", "model"]["messages"] == ROUNDS + 1
        assert rows["down", "model"]["bytes"] == (ROUNDS + 1) * size
        assert rows["up", "model"]["bytes"] == ROUNDS * size
        assert (
            rows["up", "training"]["bytes"] == rows["up", "validation"]["bytes"] == ROUNDS * 2 * 8
        )
        assert set(rows) == {
            ("down", "model"),
            ("up", "model"),
            ("up", "training"),
            ("up", "validation"),
        }


def test_fedavg_of_one_client_is_that_client_alone():
    federated, alone = train("fedavg", clients=1), train("local", clients=1)
    np.testing.assert_allclose(federated.curve["loss"], alone.curve["loss"], rtol=1e-6)
    assert federated.curve["test"] == alone.curve["test"]


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGED_BY_ITSELF)
def test_the_area_under_the_roc_curve_judges_the_same_training(name):
    """It is no share of the test nodes, as accuracy is; of more classes than two there is none."""
    task = task_of(name, rounds=2)
    labels = (
        task.graph.labels + (np.random.default_rng(0).random(task.graph.num_nodes) < 0.3)
    ) % 2  # noise: no area is 1
    binary = dataclasses.replace(
        task, graph=dataclasses.replace(task.graph, labels=labels, num_classes=2)
    )
    found = {
        metric: summary(
            run_on(
                dataclasses.replace(binary, setting=task.setting.replace(metric=metric)),
                name,
                **few_epochs(name),
            )
        )["curve"]
        for metric in ("accuracy", "roc_auc")
    }
    if name != "answers_counts":  # whose training follows the round that validation chooses
        assert found["accuracy"]["loss"] == found["roc_auc"]["loss"]
    for kind in {"test", "local_before", "local_after"} & set(found["roc_auc"]):
        areas = np.array(found["roc_auc"][kind])
        assert ((areas > 0.3) & (areas < 1)).all()
        if name not in ("local", "locsage_plus"):  # whose test is a mean of several shares
            right = areas * len(task.split.test)
            assert (abs(right - right.round()) > 1e-6).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["fedavg", "fedsage_plus", "local"],
)
def test_a_client_in_no_set_is_left_out(name: str):
    """Of validation it is said, as without validation nodes nobody could choose a round."""
    task = task_of(name, rounds=2)
    assert task.partition is not None
    kept = [
        part[task.partition.client[part] != 0]
        for part in (task.split.train, task.split.val, task.split.test)
    ]
    with pytest.warns(Notice, match=r"\(0\)"):
        result = run_on(dataclasses.replace(task, split=Split(*kept)), name, **few_epochs(name))
    found = summary(result)
    assert np.isfinite(
        [
            found[key][when]
            for key in ("accuracy", "validation", "local_after")
            for when in ("best", "last")
        ]
    ).all()
    if name == "local":
        assert found["best_round"][0] == 2  # its last
    nobody = dataclasses.replace(
        task, split=Split(task.split.train, np.array([], dtype=np.int64), task.split.test)
    )
    with pytest.raises(PartitionError):
        run_on(nobody, name, **few_epochs(name))


WRONG: dict[str, dict[str, Any]] = {
    "answers_bayes": {"epsilon": 0.0, "homophily": 1.0, "prior_count": 0.0, "likelihood": "h"},
    "answers_private_labels": {"label_epsilon": 0.0},
    "answers_propagation": {"alpha": 1.0, "iterations": -1, "labels": 1},
    "feddep": {"prototypes": 0, "depth": -1, "bernoulli_rate": 1.5, "hidden_share": -0.1},
    "fedgcn_noised": {"epsilon": 0.0, "delta": 1.0, "clip": 0.0},
    "fedgnn": {"sigma": -1.0, "clip": 0.0, "refresh": 0},
    "fedgsl": {"edges": 0, "share": 1.5, "noise": -1.0},
    "fedgraph": {"target": 0.0, "episodes": -1, "cost_weight": -0.5},
    "fedsage_plus": {"hidden_share": 1.0, "generator_batch": 0, "generator_learning_rate": 0.0},
    "locsage_plus": {"generator_federated_epochs": 1},
    "fedavg_oracle": {"hops": -1},
    "feddep_wo_dgen": {"depth": 2},
    "feddep_wo_nfdp": {"fused": "chained"},
    "feddep_joint": {"inference": "generated"},
    "gap": {"epsilon": 8.0},  # a budget takes a delta
    "gap_authors": {"bounding": "both", "encodings": False, "decoder_layers": 3},
    "vesper_gcn": {"min_degree": 11},
    "vesper_gin": {
        "theta": -0.5,
        "release": "one_shot",
    },  # the latter takes frozen or detached weights
    "vfgnn": {"weights": "detached"},
    "vertical_gin": {"theta": 1.0},
}


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name, keys in WRONG.items() for key in keys]
)
def test_parameters_that_cannot_be_meant_are_refused(name: str, key: str):
    with pytest.raises(ValidationError):
        registry.find(name).parameters(**{key: WRONG[name][key]})


def test_a_method_may_be_a_single_module(tmp_path, monkeypatch):
    code = (
        "from feddep.methods.basic import NoParameters\nfrom feddep.methods.method import "
        "Method\n\n"
    )
    (tmp_path / "toy_method.py").write_text(
        f'{code}GROUP = "Oracles"\n'
        'METHODS = (Method("toy", "Toy", NoParameters, f"{__name__}:run"),)\n'
    )
    monkeypatch.setattr(feddep.methods, "__path__", [*feddep.methods.__path__, str(tmp_path)])
    assert registry.groups.__wrapped__()["Oracles"][-1].function == "feddep.methods.toy_method:run"
    monkeypatch.delitem(sys.modules, "feddep.methods.toy_method")


def test_what_trains_any_encoder_trains_on_all_nodes_at_once_too():
    methods = [each for each in registry.built_in().values() if each.encoders == ANY_ENCODER]
    assert "fedprox" in {each.name for each in methods}
    assert all(each.full_batch and each.mini_batch for each in methods)
