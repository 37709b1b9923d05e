"""A view of a setting that shows only what was declared."""

import copy
import pickle

import pytest

from feddep.training.config import TrainingConfig


def test_a_field_that_does_not_exist_cannot_be_declared():
    with pytest.raises(AttributeError):
        TrainingConfig().restricted(("fan_out",), "step toy")


def test_a_field_that_is_replaced_can_be_read_and_the_others_stay_hidden():
    view = TrainingConfig().restricted(("fanout",), "step toy").replace(rounds=9)
    assert (view.fanout, view.rounds) == (5, 9)
    with pytest.raises(AttributeError, match=r"^step toy reads setting\.layers, which it does not declare$"):
        _ = view.layers
    assert not hasattr(view, "layers")


def test_a_view_can_be_copied():
    view = TrainingConfig().restricted(("fanout",), "step toy")
    for other in (copy.copy(view), copy.deepcopy(view), pickle.loads(pickle.dumps(view))):
        assert other.fanout == 5
        with pytest.raises(AttributeError, match=r"step toy reads setting\.layers"):
            _ = other.layers
