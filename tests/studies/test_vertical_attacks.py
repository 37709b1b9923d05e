"""Attacks on vertical training: what is memorised is found, nothing where there is nothing; bounds on ε and their controls."""

import dataclasses
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from small import case_of, measured, of_run, page, small_task

from feddep.experiment.plan import Run
from feddep.graph.graph import Graph
from feddep.methods import registry
from feddep.methods.vesper.noise_budget import noise_scale
from feddep.training.task import Task
from feddep.utils.errors import ConfigError
from studies.measuring import frame
from studies.privacy_audit.attack_statistics import auc
from studies.vertical_attacks import node_membership, vertical_canaries
from studies.vertical_attacks.measure import with_known_noise
from studies.vertical_attacks.page import ATTACKS, figure, summarise
from studies.vertical_attacks.vertical_canaries import SimulatedPairs, Watched, with_canaries

KNOWN = {"weights": "detached", "bounding": "both"}


def vertical_task(**setting: Any) -> Task:
    task = small_task(None)
    return dataclasses.replace(
        task, setting=task.setting.replace(**{"optimizer": "adam", "learning_rate": 0.02, "batch_size": 60, **setting})
    )


def trained(name: str, task: Task, **options: Any) -> tuple[Any, Task, Any]:
    method = registry.find(name)
    return method, task, with_known_noise(method, task, method.parameters(**options))


def memorising(**setting: Any) -> Task:
    """Labels that have nothing to do with the features of a node, which are its own, and few edges."""
    task, rng = vertical_task(**{"dropout": 0.0, "rounds": 30, **setting}), np.random.default_rng(0)
    graph = task.graph
    features, labels = rng.normal(size=(graph.num_nodes, 200)), rng.integers(4, size=graph.num_nodes)
    return dataclasses.replace(task, graph=Graph.from_edges(graph.edges()[::20], features, labels, 4))


@pytest.mark.parametrize("name", ["vertical_mlp", "vertical_gin"])
def test_what_a_model_memorises_tells_members(name):
    found = node_membership.measure(*trained(name, memorising()))
    assert found["accuracy_inside"] > found["accuracy_outside"] + 0.3
    assert min(found["membership_auc"], found["entropy_auc"]) > 0.7


@pytest.mark.parametrize(
    ("name", "setting", "options"),
    [
        ("vertical_mlp", {"learning_rate": 1e-6, "rounds": 1}, {}),
        ("vesper_gin", {"rounds": 5}, {"theta": 1000.0}),
    ],
)
def test_members_are_not_told_where_nothing_was_learned_or_all_is_noise(name, setting, options):
    found = node_membership.measure(*trained(name, memorising(**setting), **options))
    for score in ("membership_auc", "entropy_auc"):
        assert abs(found[score] - 0.5) < 0.12  # three standard deviations, of 120 members and as many others


def test_an_attack_model_learns_what_the_shadow_model_shows_and_nothing_else():
    rng = np.random.default_rng(0)
    sure, unsure = (rng.dirichlet([peak, 1, 1], size=300) for peak in (20, 2))
    posteriors, members = np.concatenate([sure[150:], unsure[150:]]), np.repeat([True, False], 150)
    rolled = np.roll(posteriors, 1, axis=1)  # which class it is does not matter
    scores = node_membership.attack_scores(sure[:150], unsure[:150], rolled, 0)
    assert auc(scores, members) > 0.9
    mixed = rng.permutation(np.concatenate([sure[:150], unsure[:150]]))
    assert abs(auc(node_membership.attack_scores(mixed[:150], mixed[150:], posteriors, 0), members) - 0.5) < 0.4
    assert auc(node_membership.attack_scores(unsure[:150], sure[:150], posteriors, 0), members) < 0.1


def test_shadow_nodes_lie_outside_as_far_as_these_suffice(monkeypatch):
    labels = np.array([0] * 8 + [1] * 6 + [3])
    inside = np.array([0, 1, 8, 9, 10, 11])
    chosen = node_membership.shadow_nodes(labels, inside, np.random.default_rng(0))
    assert np.bincount(labels[chosen], minlength=4).tolist() == [4, 3, 0, 0]
    assert set(chosen) & set(inside) <= {8, 9, 10, 11}
    assert {12, 13} <= set(chosen)
    monkeypatch.setattr(node_membership, "SHADOW_NODES", 2)
    assert len(node_membership.shadow_nodes(labels, inside, np.random.default_rng(0))) == 4


@pytest.mark.parametrize(("name", "options"), [("vertical_gin", {}), ("gap", {"theta": 0.0, "release": "one_shot"})])
def test_a_model_is_asked_as_it_was_trained(name, options):
    """Without noise, on the graph that it was trained on, posteriors are those behind the accuracies of the last round."""
    method, task, parameters = trained(name, vertical_task(), bounding="none", **options)
    target = node_membership.train_inside(method, task, parameters, task.graph, "whole")
    groups = target.task.split.val, target.task.split.test
    answers = node_membership.query(target, task.graph, *groups)
    right = [
        (posteriors.argmax(axis=1) == task.graph.labels[nodes]).mean() for posteriors, nodes in zip(answers, groups, strict=True)
    ]
    assert right == pytest.approx(target.evaluate())
    assert len(target.task.split.train) == task.graph.num_nodes


def test_every_training_of_a_run_has_the_noise_of_its_budget():
    method, task = registry.find("vesper_gin"), vertical_task()
    parameters = method.parameters(epsilon=4.0, delta=1e-6, **KNOWN)
    known = with_known_noise(method, task, parameters)
    assert known.theta == noise_scale(len(task.split.train), task.graph.num_edges, task.setting, parameters, "gin")
    target = node_membership.train_inside(method, task, known, task.graph.subgraph(np.arange(100)), "part")
    assert target.protocol.design.theta == known.theta


@pytest.mark.parametrize(("name", "further"), [("vertical_gin", 0), ("vesper_gcn", 3)])
def test_canaries_are_pairs_that_nothing_else_reaches(name, further):
    _, task, parameters = trained(name, vertical_task())
    world, joined = with_canaries(task, parameters, 50)
    u = task.graph.num_nodes + np.arange(50)
    assert (world.graph.degrees[u] == further + joined).all()
    assert (world.graph.degrees[u + 50] == further + joined).all()
    assert (np.asarray(world.graph.adjacency[u, u + 50]).ravel() == joined).all()
    assert 10 < joined.sum() < 40
    assert set(u) | set(u + 50) <= set(world.split.train)
    assert (world.graph.subgraph(np.arange(u[0])).edges() == task.graph.edges()).all()
    assert len(np.unique(world.graph.features[u].toarray(), axis=0)) == 1
    assert not (world.graph.features[u].multiply(world.graph.features[u + 50])).nnz


class Compared(Watched):
    """Compares what is simulated with what was sent."""

    def __init__(self, joined: np.ndarray, further: int) -> None:
        super().__init__(len(joined), further)
        self.joined, self.compared = joined, 0

    def receive(self, client: int, direction: str, kind: str, payload: Any) -> None:
        super().receive(client, direction, kind, payload)
        if direction == "down" or ("test" not in kind and "all" not in kind):
            return
        task, canaries = self.training.task, len(self.joined)
        nodes = task.split.test if "test" in kind else np.arange(task.graph.num_nodes)
        places = np.flatnonzero(np.isin(nodes, task.split.train[-2 * canaries :])).reshape(2, canaries)
        simulated = SimulatedPairs(self.training, self._further, 2).rows()
        for end in (0, 1):
            sent = payload["values"][places[end]].flatten(1).double()
            assert torch.allclose(simulated[self.joined.astype(int), end, 0], sent, atol=1e-6)
        self.compared += 1


def watch(method: Any, task: Task, parameters: Any, watched: Watched) -> Any:
    return method.run(dataclasses.replace(task, observers=(watched.receive,), inspectors=(watched.inspect,)), parameters)


@pytest.mark.parametrize(
    ("name", "options", "messages"),
    [
        *((name, {}, 4) for name in ("vertical_gin", "vertical_gcn")),
        ("vfgnn", {"theta": 0.0}, 4),
        ("gap", {"theta": 0.0, "release": "one_shot"}, 1),
        ("vesper_gin", {"theta": 0.0, **KNOWN}, 4),
        ("vesper_gcn", {"theta": 0.0, "degree": 5}, 4),
    ],
)
def test_without_noise_the_rows_that_are_simulated_are_those_that_were_sent(name, options, messages):
    method, task, parameters = trained(name, vertical_task(dropout=0.0), **options)
    world, joined = with_canaries(task, parameters, 20)
    compared = Compared(joined, 3 if name == "vesper_gcn" else 0)
    watch(method, world, parameters, compared)
    assert compared.compared == messages
    assert (np.sort(compared.scores[joined])[0] > np.sort(compared.scores[~joined])[-1]).all()


def test_watching_changes_nothing():
    method, task, parameters = trained("vesper_gin", vertical_task(), theta=0.5, **KNOWN)
    world, _ = with_canaries(task, parameters, 20)
    plain = method.run(world, parameters).weights()
    watched = watch(method, world, parameters, Watched(20, 0)).weights()
    assert all(torch.equal(tensor, watched[name]) for name, tensor in plain.items())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vertical_gin", {}),
        ("gap", {"theta": 0.05, "release": "one_shot", "bounding": "none"}),
        ("vesper_gin", {"theta": 0.05, **KNOWN}),
        ("vesper_gcn", {"theta": 0.05, "degree_ratio": 1.0, **KNOWN}),
    ],
)
def test_with_little_noise_every_edge_is_found(name, options):
    found = vertical_canaries.measure(*trained(name, vertical_task(), **options), canaries=200)
    assert found["edge_auc"] > 0.99
    assert 2.5 < found["low"] <= found["most"] < found["promised_certified"]


def test_the_more_noise_the_lower_the_bound_and_never_above_the_promise():
    found = [
        vertical_canaries.measure(*trained("vesper_gin", vertical_task(), theta=theta, **KNOWN), canaries=200)
        for theta in (0.05, 1.0, 40.0)
    ]
    low, areas, promises = ([each[key] for each in found] for key in ("low", "edge_auc", "promised_certified"))
    assert low[0] > low[1] > low[2]
    assert all(bound < promise for bound, promise in zip(low, promises, strict=True))
    assert promises[2] < 3
    assert abs(areas[2] - 0.5) < 0.13
    assert low[2] < 0.5


def test_without_message_passing_no_edge_is_found():
    found = vertical_canaries.measure(*trained("vertical_mlp", vertical_task()), canaries=100)
    assert (found["edge_auc"], found["low"]) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("name", "options", "accountant", "finite"),
    [
        ("vesper_gin", {**KNOWN}, "certified", True),
        ("vesper_gin", {"bounding": "both"}, "certified", False),  # weights learn through edges
        ("vesper_gin", {}, "certified", False),  # and neighbours are sampled
        ("vesper_gin", {}, "rdp", True),
        ("vesper_gin", {"theta": 0.0, **KNOWN}, "rdp", False),
        ("vesper_gcn", KNOWN, "certified", False),  # degrees without noise
        ("vertical_gin", {}, "rdp", False),
    ],
)
def test_a_promise_is_finite_where_there_is_one(name, options, accountant, finite):
    method, task, parameters = trained(name, vertical_task(), **options)
    assert math.isfinite(vertical_canaries.promised(method, task, parameters, accountant, 1e-5)) == finite


def test_other_methods_are_refused():
    with pytest.raises(ConfigError):
        measured("vertical_attacks", case_of("fedavg", small_task()))


def test_a_run_is_measured_and_again_the_same():
    case = case_of("gap", vertical_task(), epsilon=8.0, release="one_shot", bounding="none", delta=1e-6)
    first = measured("vertical_attacks", case)
    assert first.equals(measured("vertical_attacks", case))
    (row,) = first.to_dict("records")
    assert (row["budget"], row["canaries"]) == (8.0, 500)
    assert 0 <= row["low"] < row["promised_certified"] < 8  # at a larger δ


@pytest.fixture
def found() -> pd.DataFrame:
    """Two methods, one with two budgets, and two seeds."""
    rows = []
    for name, budget, theta in (("vertical_gin", None, None), ("gap,epsilon=8.0", 8.0, 1.3), ("gap,epsilon=1.0", 1.0, 9.0)):
        for seed in (3, 4):
            promises = {"promised_certified": None if budget is None else budget / 2, "promised_rdp": None}
            scores = {"membership_auc": 0.5 + seed / 100, "entropy_auc": 0.6, "edge_auc": 0.7, "low": float(seed), "most": 4.5}
            accuracies = {"accuracy_inside": 0.9, "accuracy_outside": 0.8}
            of = of_run(Run("quick", "cora", None, name, seed))
            rows.append({**of, "budget": budget, "theta": theta, **scores, **accuracies, **promises})
    return frame(rows)


def test_means_by_hand(found):
    summary = summarise(found)
    assert summary["budget"].tolist() == [math.inf, 8.0, 1.0]
    assert summary["membership_auc_mean"].tolist() == pytest.approx([0.535] * 3)
    assert summary["low_std"].tolist() == pytest.approx([math.sqrt(0.5)] * 3)
    assert summary["promised_certified"].tolist() == [math.inf, 4.0, 0.5]
    assert summary["promised_rdp"].tolist() == [math.inf] * 3


def test_the_figure_has_a_line_a_method_and_attack_over_the_budgets(found):
    (ax,) = (ax for ax in figure(summarise(found)).axes if ax.axison)
    assert ax.get_title(loc="left") == "Cora"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "8", "∞"]
    assert len(ax.containers) == 2 * len(ATTACKS)
    lengths = [len(container.lines[0].get_xdata()) for container in ax.containers]
    assert lengths == [1, 1, 1, 2, 2, 2]


def test_the_page(found):
    made = page("vertical_attacks", vertical_attacks=found.to_dict("records"))
    assert made["page.md"].count("3.5000 ± 0.7071") == 3
    assert len(made["table.csv"]) == 3
