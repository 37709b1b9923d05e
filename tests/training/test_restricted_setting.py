"""A view of a setting that shows only what was declared."""

import copy
import pickle

import pytest

from feddep.training.config import TrainingConfig


def test_a_field_that_does_not_exist_cannot_be_declared():
    with pytest.raises(AttributeError):
        TrainingConfig().restricted(("fan_out",), "step toy")


def test_a_field_that_is_replaced_can_be_read_and_the_others_stay_hidden_in_copies_too():
    view = TrainingConfig().restricted(("fanout",), "step toy").replace(rounds=9)
    for each in (view, copy.copy(view), copy.deepcopy(view), pickle.loads(pickle.dumps(view))):
        assert (each.fanout, each.rounds) == (5, 9)
        assert not hasattr(each, "layers")
