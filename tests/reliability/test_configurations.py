"""Whatever a configuration says, it is accepted and can be planned, or it is refused with a ConfigError."""

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep.config.loading import validate
from feddep.config.models import Configuration
from feddep.experiment import keys, plan
from feddep.experiment.steps import step_jobs
from feddep.methods import registry
from feddep.utils.errors import ConfigError, FeddepError
from feddep.utils.parameters import Parameters
from graphs import MINIMAL_CONFIG, changed

NAMES = ["tiny", "quick", "cora", "feddep", "fedavg", "fedgcn", "global", "default", "feddep,prototypes=3", "few"]
HOSTILE: list[Any] = [
    *(None, True, [], {}, "", " ", "3", "1e-3", "null", "a\nb", "über", "\u202e", "\ud800", "\x00", "é" * 10_000, "a,b=", "."),
    *(-1, 0, 2.5, 10**30, 1e-320, -1e308, math.nan, math.inf, 2**63, [None], [[]], [1, 1], ["3"], [{}], [10**30], b"bytes"),
    *({"a": 1}, {"a": {}}, {3: 4}, {None: None}, {"": 0}, {"tiny": None}, {"tiny": {}}, {"quick": {"rounds": [1, 2]}}),
    *((1, 2), {1, 2}),
]
"""What no key takes, or few."""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in a configuration there are values."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(item, (*path, key))


def planned(raw: Any) -> bool:
    """Whether a configuration is accepted; then its first runs must have keys."""
    try:
        config = validate(raw)
        runs = plan.all_runs(config)
    except ConfigError:
        return False
    assert len(set(runs)) == len(runs)
    for run in runs[:3]:
        with suppress(FeddepError):  # a graph of one's own is not there, or a parameter has no value for a dataset
            assert keys.run_key(config, run) not in {job.key for job in step_jobs(config, run)}
    return True


@pytest.mark.parametrize("path", sorted(places(MINIMAL_CONFIG), key=repr) + [(name,) for name in Configuration.model_fields])
def test_any_value_anywhere_is_accepted_or_refused(path: tuple[Any, ...]):
    assert sum(planned(changed(path, value)) for value in HOSTILE) < len(HOSTILE) * 2 / 3


@given(
    st.recursive(
        st.sampled_from(HOSTILE), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner)
    )
)
def test_any_value_is_refused(raw: Any):
    assert not planned(raw)


def numbers(rule: Any) -> Iterator[dict[str, Any]]:
    """Every rule for a number in a schema."""
    if isinstance(rule, dict):
        if rule.get("type") in ("integer", "number"):
            yield rule
        for inner in rule.values():
            yield from numbers(inner)
    elif isinstance(rule, list):
        for inner in rule:
            yield from numbers(inner)


def test_every_number_has_a_least_and_a_largest_value():
    """So that none overflows, and none takes all memory."""
    assert registry.methods()  # imports all models
    checked = 0
    for model in Parameters.__subclasses__():
        if model.__module__.startswith("feddep."):
            for rule in numbers(model.model_json_schema()):
                assert {"minimum", "exclusiveMinimum"} & set(rule), model
                assert {"maximum", "exclusiveMaximum"} & set(rule), model
                checked += 1
    assert checked > 40
