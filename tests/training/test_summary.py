"""What is reported of a run."""

import json

import numpy as np
import pytest

from feddep.graph.graph import Graph
from feddep.graph.split import Split
from feddep.training.config import TrainingConfig
from feddep.training.history import History
from feddep.training.summary import summary
from feddep.training.task import MajorityBaseline, RunResult, Task

FIRST = History(loss=[1.0, 0.5], validation=[0.5, 0.75], test=[0.25, 0.5])
SECOND = History(loss=[2.0, 1.5], validation=[0.75, 0.25], test=[1.0, 0.0])
LEDGER = [{"client": 0, "direction": "up", "kind": "model", "messages": 1, "bytes": 8}]


def test_of_one_model():
    reported = summary(RunResult([FIRST], LEDGER))
    assert reported == {
        "accuracy": {"best": 0.5, "last": 0.5},
        "validation": {"best": 0.75, "last": 0.75},
        "best_round": 2,
        "stalled": False,
        "clients": [],
        "curve": {
            "round": [1, 2],
            "loss": [1.0, 0.5],
            "validation": [0.5, 0.75],
            "test": [0.25, 0.5],
        },
        "communication": LEDGER,
    }
    assert json.loads(json.dumps(reported)) == reported


def test_of_several_models_it_is_the_mean():
    reported = summary(RunResult([FIRST, SECOND], clients=[{"nodes": 3}, {"nodes": 4}]))
    assert reported["accuracy"] == {"best": 0.75, "last": 0.25}
    assert reported["validation"] == {"best": 0.75, "last": 0.5}
    assert reported["best_round"] == [2, 1]
    assert reported["clients"] == [
        {"nodes": 3, "accuracy": {"best": 0.5, "last": 0.5}},
        {"nodes": 4, "accuracy": {"best": 1.0, "last": 0.0}},
    ]
    assert reported["curve"]["loss"] == [1.5, 1.0]
    assert reported["curve"]["test"] == [0.625, 0.25]


@pytest.mark.parametrize(
    ("loss", "test", "stalled"),
    [
        ([2.0, 0.9], 0.3, True),
        ([2.0, 0.9], 0.32, False),
        ([2.0, 1.1], 0.9, True),
        ([2.0, 1.0 - 0.02], 0.32, False),
    ],
)
def test_what_is_no_better_than_a_constant_answer_stalled(loss, test, stalled):
    """A constant answer has an accuracy of 0.3 and a loss of 1."""
    shared = History(loss=loss, validation=[0.5, 0.5], test=[test, 1.0])
    assert RunResult([shared], constant=MajorityBaseline(0.3, 1.0)).stalled == stalled
    own = RunResult(
        [shared, History(loss=loss, validation=[0.5, 0.5], test=[0.1, 0.1])],
        constant=MajorityBaseline(0.3, 1.0),
    )
    # Models of clients may be worse than that on the whole graph.
    assert own.stalled == (min(loss) > 0.99)


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
        history = History(loss=[9.0], validation=[0.5], test=[area])
        assert RunResult([history], constant=task.constant).stalled == stalled


def test_models_of_different_lengths_are_an_error():
    with pytest.raises(ValueError):  # noqa: PT011
        summary(RunResult([FIRST, History(loss=[1.0], validation=[1.0], test=[1.0])]))


def test_what_owners_classify_and_validation_as_tested():
    first = History(
        [1.0, 0.5], [0.5, 0.75], [0.2, 0.5], [0.1, 0.6], [(1, 4), (3, 4)], [(2, 4), (4, 4)]
    )
    second = History(
        [2.0, 1.5], [0.75, 0.25], [1.0, 0.0], [0.8, 0.2], [(0, 1), (1, 1)], [(1, 1), (0, 1)]
    )
    reported = summary(RunResult([first, second]))
    # The first is best in round 2, the second in round 1; owners' nodes are counted together.
    assert reported["global_validation"] == pytest.approx(
        {"best": (0.6 + 0.8) / 2, "last": (0.6 + 0.2) / 2}
    )
    assert reported["local_before"] == {"best": 3 / 5, "last": 4 / 5}
    assert reported["local_after"] == {"best": 5 / 5, "last": 4 / 5}
    assert reported["curve"]["local_before"] == [1 / 5, 4 / 5]
    assert reported["curve"]["local_after"] == [3 / 5, 4 / 5]
    assert "local_before" not in summary(RunResult([FIRST]))
    assert "global_validation" not in summary(RunResult([first, SECOND]))
