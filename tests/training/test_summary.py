"""What is reported of a run."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddep.graph.graph import Graph
from feddep.graph.split import Split
from feddep.training.config import TrainingConfig
from feddep.training.evaluation import Counts, GlobalAccuracy, macro_f1
from feddep.training.evaluator import score
from feddep.training.history import History
from feddep.training.summary import summary
from feddep.training.task import MajorityBaseline, RunResult, Task

LEDGER = [{"client": 0, "direction": "up", "kind": "model", "messages": 1, "bytes": 8}]
CLASSES = ((1, 1), (2, 2), (2, 2))
"""Of four nodes in two classes, half of each class are right."""


def counts(validation: float, test: int = 1, nodes: int = 2) -> list:
    """Of one client with 100 validation nodes."""
    return [(100 * validation, 100), (test, nodes), CLASSES]


def history_of(loss, validation, test) -> History:
    """One model that is judged on the global graph."""
    counted = [Counts.of([counts(each)]) for each in validation]
    on_graph = [[GlobalAccuracy(each)] for each in test]
    return History("global", True, [[(1, each)] for each in loss], counted, counted, on_graph)


FIRST = history_of([1.0, 0.5], [0.5, 0.75], [0.25, 0.5])
TWO = History(
    "local_before",
    False,
    [[(3, 1.0), (4, 2.0)], [(3, 0.5), (4, 1.5)]],
    [
        Counts.of([counts(0.5, 1, 4), counts(0.75, 0, 1)]),
        Counts.of([counts(0.75, 3, 4), counts(0.25, 1, 1)]),
    ],
    [
        Counts.of([counts(0.1, 2, 4), counts(0.2, 1, 1)]),
        Counts.of([counts(0.3, 4, 4), counts(0.4, 0, 1)]),
    ],
    [
        [GlobalAccuracy(0.25, 0.1), GlobalAccuracy(1.0, 0.8)],
        [GlobalAccuracy(0.5, 0.6), GlobalAccuracy(0.0, 0.2)],
    ],
)
"""Two clients; the first is best in round 2, the second in round 1."""


def test_of_one_model():
    reported = summary(RunResult(FIRST, LEDGER))
    assert np.isnan(reported["macro_f1"].pop("global"))
    assert reported == {
        "accuracy": {"best": 0.5, "last": 0.5},
        "validation": {"best": 0.75, "last": 0.75},
        "local_before": {"best": 0.5, "last": 0.5},
        "local_after": {"best": 0.5, "last": 0.5},
        "macro_f1": {"before": 0.5, "after": 0.5},
        "best_round": 2,
        "stalled": False,
        "clients": [],
        "curve": {
            "round": [1, 2],
            "loss": [1.0, 0.5],
            "validation": [0.5, 0.75],
            "test": [0.25, 0.5],
            "local_before": [0.5, 0.5],
            "local_after": [0.5, 0.5],
        },
        "communication": LEDGER,
    }
    assert json.loads(json.dumps(reported)) == reported


def test_of_several_models_it_is_the_mean():
    reported = summary(RunResult(TWO, clients=[{"nodes": 3}, {"nodes": 4}]))
    assert reported["accuracy"] == {"best": 0.75, "last": 0.25}
    assert reported["validation"] == {"best": 0.75, "last": 0.5}
    assert reported["best_round"] == [2, 1]
    assert reported["clients"] == [
        {"nodes": 3, "accuracy": {"best": 0.5, "last": 0.5}},
        {"nodes": 4, "accuracy": {"best": 1.0, "last": 0.0}},
    ]
    assert reported["curve"]["loss"] == [1.5, 1.0]
    assert reported["curve"]["test"] == [0.625, 0.25]


def test_owners_choose_one_round_before_and_one_after():
    owners = dataclasses.replace(TWO, evaluation="owners", together=True, on_graph=[])
    owners.on_graph = [[GlobalAccuracy()]] * 2
    reported = summary(RunResult(owners, clients=[{"nodes": 3}, {"nodes": 4}]))
    assert reported["best_round"] == [1, 2]
    assert reported["validation"] == {"best": 1.25 / 2, "last": 0.5}
    assert reported["validation_after"] == pytest.approx({"best": 0.35, "last": 0.35})
    assert reported["local_before"] == {"best": 1 / 5, "last": 4 / 5}
    assert reported["local_after"] == {"best": 4 / 5, "last": 4 / 5}
    assert [each["accuracy"] for each in reported["clients"]] == [
        {"best": [0.25, 1.0]},
        {"best": [0.0, 0.0]},
    ]
    # The weighted mean: a node counts once.
    assert reported["curve"]["loss"] == pytest.approx([(3 * 1 + 4 * 2) / 7, (1.5 + 6) / 7])
    assert np.isnan(reported["accuracy"]["best"])


def of_pairs(pairs):
    """Logits of the classes that nodes get, and the classes that they have."""
    predicted, true = torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T
    return torch.eye(4)[predicted], true


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))), min_size=1, max_size=3))
def test_macro_f1_of_several_clients_is_that_of_all_their_nodes(clients):
    """The definition: of each class that a node has or gets, F1 = 2 / (1 / precision + 1 /
    recall), 0 where no node is right."""
    found = macro_f1([score(*of_pairs(pairs))[1] for pairs in clients])
    nodes = [pair for pairs in clients for pair in pairs]
    scores = []
    for label in {each for pair in nodes for each in pair}:
        right = nodes.count((label, label))
        precision = right / max(sum(p == label for p, _ in nodes), 1)
        recall = right / max(sum(t == label for _, t in nodes), 1)
        scores.append(2 * precision * recall / (precision + recall) if right else 0.0)
    assert found == pytest.approx(np.mean(scores) if scores else np.nan, nan_ok=True)


@pytest.mark.parametrize(
    ("loss", "test", "stalled"),
    [
        ([2.0, 0.9], 0.3, True),
        ([2.0, 0.9], 0.32, False),
        ([2.0, 1.1], 0.9, True),
        ([math.nan, 1.1], 0.9, True),
        ([math.nan, 0.9], 0.32, False),
        ([2.0, 1.0 - 0.02], 0.32, False),
    ],
)
def test_what_is_no_better_than_a_constant_answer_stalled(loss, test, stalled):
    """A constant answer has an accuracy of 0.3 and a loss of 1."""
    shared = history_of(loss, [0.5, 0.5], [test, 1.0])
    assert RunResult(shared, constant=MajorityBaseline(0.3, 1.0)).stalled == stalled
    own = History(
        "local_before",
        False,
        [[(1, each)] * 2 for each in loss],
        [Counts.of([counts(0.5)] * 2)] * 2,
        [Counts.of([counts(0.5)] * 2)] * 2,
        [[GlobalAccuracy(0.1)] * 2] * 2,
    )
    # Models of clients may be worse than that on the whole graph.
    result = RunResult(own, constant=MajorityBaseline(0.3, 1.0))
    assert result.stalled == (loss[-1] > 0.99)


def test_a_constant_answer_is_the_most_frequent_class_of_training_nodes():
    graph = Graph.from_edges(
        np.zeros((0, 2)), np.ones((8, 1)), np.array([0, 0, 1, 2, 0, 1, 1, 1]), 4
    )
    task = Task(
        "t", graph, Split(np.arange(4), np.arange(4, 5), np.arange(5, 8)), None, TrainingConfig(), 0
    )
    assert task.constant == pytest.approx((0.0, -(0.5 * np.log(0.5) + 0.5 * np.log(0.25))))


def test_a_constant_answer_ranks_nothing_whatever_the_loss():
    graph = Graph.from_edges(
        np.zeros((0, 2)), np.ones((8, 1)), np.array([0, 0, 0, 1, 0, 1, 1, 1]), 2
    )
    split = Split(np.arange(4), np.arange(4, 5), np.arange(5, 8))
    task = Task("t", graph, split, None, TrainingConfig(metric="roc_auc"), 0)
    for area, stalled in ((0.6, False), (0.505, True)):
        history = history_of([9.0], [0.5], [area])
        assert RunResult(history, constant=task.constant).stalled == stalled


def test_what_owners_classify_and_validation_as_tested():
    reported = summary(RunResult(TWO))
    # The first is best in round 2, the second in round 1; owners' nodes are counted together.
    assert reported["global_validation"] == pytest.approx(
        {"best": (0.6 + 0.8) / 2, "last": (0.6 + 0.2) / 2}
    )
    assert reported["local_before"] == {"best": 3 / 5, "last": 4 / 5}
    assert reported["local_after"] == {"best": 5 / 5, "last": 4 / 5}
    assert reported["curve"]["local_before"] == [1 / 5, 4 / 5]
    assert reported["curve"]["local_after"] == [3 / 5, 4 / 5]
    assert "global_validation" not in summary(RunResult(FIRST))
