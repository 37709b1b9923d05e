"""What is reported of a run."""

import json

import pytest

from feddep.training.history import History
from feddep.training.summary import summary
from feddep.training.task import RunResult

FIRST = History(loss=[1.0, 0.5], validation=[0.5, 0.75], test=[0.25, 0.5])
SECOND = History(loss=[2.0, 1.5], validation=[0.75, 0.25], test=[1.0, 0.0])
LEDGER = [{"client": 0, "direction": "up", "kind": "model", "messages": 1, "bytes": 8}]


def test_of_one_model():
    reported = summary(RunResult([FIRST], LEDGER))
    assert reported == {
        "accuracy": {"best": 0.5, "last": 0.5},
        "validation": {"best": 0.75, "last": 0.75},
        "best_round": 2,
        "clients": [],
        "curve": {"round": [1, 2], "loss": [1.0, 0.5], "validation": [0.5, 0.75], "test": [0.25, 0.5]},
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


def test_models_of_different_lengths_are_an_error():
    with pytest.raises(ValueError):  # noqa: PT011
        summary(RunResult([FIRST, History(loss=[1.0], validation=[1.0], test=[1.0])]))


def test_what_owners_classify_and_validation_as_tested():
    first = History([1.0, 0.5], [0.5, 0.75], [0.2, 0.5], [0.1, 0.6], [(1, 4), (3, 4)], [(2, 4), (4, 4)])
    second = History([2.0, 1.5], [0.75, 0.25], [1.0, 0.0], [0.8, 0.2], [(0, 1), (1, 1)], [(1, 1), (0, 1)])
    reported = summary(RunResult([first, second]))
    # The first is best in round 2, the second in round 1; owners' nodes are counted together.
    assert reported["global_validation"] == pytest.approx({"best": (0.6 + 0.8) / 2, "last": (0.6 + 0.2) / 2})
    assert reported["local_before"] == {"best": 3 / 5, "last": 4 / 5}
    assert reported["local_after"] == {"best": 5 / 5, "last": 4 / 5}
    assert reported["curve"]["local_before"] == [1 / 5, 4 / 5]
    assert reported["curve"]["local_after"] == [3 / 5, 4 / 5]
    assert "local_before" not in summary(RunResult([FIRST]))
    assert "global_validation" not in summary(RunResult([first, SECOND]))
