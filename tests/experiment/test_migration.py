"""Specifications of older records under the names that options have now."""

from typing import Any

import pytest
from pydantic import ValidationError

from feddep.experiment.migration import migrated
from feddep.methods import registry
from feddep.training.config import TrainingConfig


def specification(method: str, **options: Any) -> dict[str, Any]:
    setting = {**TrainingConfig(rounds=7).model_dump(), "hidden": 9}
    del setting["hidden_channels"]
    return {"seed": 3, "setting": setting, "method": {"name": method, **options}}


def test_options_get_their_new_names_and_new_options_their_defaults():
    renames = {
        "setting": {"hidden": "hidden_channels"},
        "methods": {"old": {"name": "feddep", "options": {"width": "embedding"}}},
    }
    found = migrated(specification("old", width=64, depth=1), renames)
    assert found["seed"] == 3
    assert found["setting"] == TrainingConfig(rounds=7, hidden_channels=9).model_dump(mode="json")
    expected = registry.find("feddep").parameters(embedding=64, depth=1).model_dump(mode="json")
    assert found["method"] == {"name": "feddep", **expected}


def test_an_option_that_a_name_stood_for_is_set():
    renames = {"setting": {"hidden": "hidden_channels"}, "methods": {"alive": {"name": "feddep", "set": {"count_bias": 1.0}}}}
    assert migrated(specification("alive"), renames)["method"]["count_bias"] == 1.0


def test_what_has_no_new_name_is_an_error():
    with pytest.raises(ValidationError):
        migrated(specification("fedavg"), {})
