"""Whatever a configuration says, it is accepted and can be planned, or it is refused with a
ConfigError.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from configuration import json_schema
from hypothesis import given
from hypothesis import strategies as st

from feddep.config.loading import validate
from feddep.experiment import plan
from feddep.experiment.steps import step_jobs
from feddep.methods import registry
from feddep.utils.errors import ConfigError, FeddepError
from feddep.utils.parameters import Parameters
from graphs import MINIMAL_CONFIG, changed

SCHEMA = json_schema()
NAMES = [
    "tiny",
    "quick",
    "cora",
    "feddep",
    "fedavg",
    "fedgcn",
    "global",
    "default",
    "feddep,prototypes=3",
    "few",
]
HOSTILE: list[Any] = [
    *(
        None,
        True,
        [],
        {},
        "",
        " ",
        "3",
        "1e-3",
        "null",
        "a\nb",
        "über",
        "\u202e",
        "\ud800",
        "\x00",
        "é" * 10_000,
        "a,b=",
        ".",
    ),
    *(
        -1,
        0,
        2.5,
        10**30,
        1e-320,
        -1e308,
        math.nan,
        math.inf,
        2**63,
        [None],
        [[]],
        [1, 1],
        ["3"],
        [{}],
        [10**30],
        b"bytes",
    ),
    *(
        {"a": 1},
        {"a": {}},
        {3: 4},
        {None: None},
        {"": 0},
        {"tiny": None},
        {"tiny": {}},
        {"quick": {"rounds": [1, 2]}},
    ),
    *((1, 2), {1, 2}),
]
"""What no key takes, or few."""


def values(rule: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a part of the schema allows."""
    while "$ref" in rule:
        rule = SCHEMA["$defs"][rule["$ref"].rpartition("/")[2]]
    if "anyOf" in rule:
        return st.one_of(*map(values, rule["anyOf"]))
    if "enum" in rule:
        return st.sampled_from(rule["enum"])
    if rule.get("type") == "integer":
        low = rule.get("minimum", 0)
        high = rule.get("maximum", rule.get("exclusiveMaximum", 10**9) - 1)
        return st.sampled_from([low, high]) | st.integers(low, min(high, 9))
    if rule.get("type") == "number":
        low, high = (
            rule.get(name, rule.get(f"exclusive{name.capitalize()}"))
            for name in ("minimum", "maximum")
        )
        return st.floats(
            low,
            high,
            exclude_min="exclusiveMinimum" in rule,
            exclude_max="exclusiveMaximum" in rule,
        )
    if rule.get("type") == "array":
        return st.lists(
            values(rule["items"]), min_size=rule.get("minItems", 0), max_size=2, unique_by=repr
        )
    if "properties" in rule:
        required = {
            name: values(each)
            for name, each in rule["properties"].items()
            if name in rule.get("required", ())
        }
        rest = {
            name: values(each) for name, each in rule["properties"].items() if name not in required
        }
        return st.fixed_dictionaries(required, optional=rest)
    inner = next(
        iter(rule.get("patternProperties", {}).values()), rule.get("additionalProperties", {})
    )
    if rule.get("type") == "object":
        return st.dictionaries(
            st.sampled_from(NAMES),
            values(inner) if isinstance(inner, dict) else st.none(),
            max_size=2,
        )
    return {"boolean": st.booleans(), "null": st.none()}.get(
        rule.get("type", ""), st.sampled_from(NAMES)
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in a configuration there are values."""
    for key, item in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield (*path, key)
        yield from places(item, (*path, key))


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    """A configuration that the schema allows, on top of one that is valid, with a hostile value
    somewhere in one of two.
    """
    top = SCHEMA["properties"]
    drawn = {
        name: draw(values(top[name]))
        for name in draw(st.lists(st.sampled_from(sorted(top)), max_size=2, unique=True))
    }
    raw = {**MINIMAL_CONFIG, **drawn}
    if draw(st.booleans()):
        return changed(
            draw(st.sampled_from(list(places(raw)))), draw(st.sampled_from(HOSTILE)), raw
        )
    return raw


def planned(raw: Any) -> bool:
    """Whether a configuration is accepted; then its first runs must have keys."""
    try:
        config = validate(raw)
        runs = plan.all_runs(config)
    except ConfigError:
        return False
    assert len(set(runs)) == len(runs)
    for run in runs[:3]:
        # A graph of one's own is not there, or a parameter has no value for a dataset.
        with suppress(FeddepError):
            assert run.key not in {job.key for job in step_jobs(run)}
    return True


@pytest.mark.slow
@given(configurations())
def test_any_configuration_near_the_models_is_accepted_or_refused(raw: dict[str, Any]):
    planned(raw)


@pytest.mark.parametrize(
    "path", sorted(places(MINIMAL_CONFIG), key=repr) + [(name,) for name in SCHEMA["properties"]]
)
def test_any_value_anywhere_is_accepted_or_refused(path: tuple[Any, ...]):
    assert sum(planned(changed(path, value)) for value in HOSTILE) < len(HOSTILE) * 2 / 3


@given(
    st.recursive(
        st.sampled_from(HOSTILE),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner),
    )
)
def test_any_value_is_refused(raw: Any):
    assert not planned(raw)


def test_every_number_has_a_least_and_a_largest_value():
    """So that none overflows, and none takes all memory."""
    assert registry.methods()  # imports all models
    models = [each for each in Parameters.__subclasses__() if each.__module__.startswith("feddep.")]
    schemas = [model.model_json_schema().get("properties", {}) for model in models]
    fields = [field for schema in schemas for field in schema.values() if "const" not in field]
    rules = [rule for field in fields for rule in field.get("anyOf", [field])]
    numbers = [rule for rule in rules if rule.get("type") in ("integer", "number")]
    assert len(numbers) > 40
    for rule in numbers:
        assert {"minimum", "exclusiveMinimum"} & set(rule), rule
        assert {"maximum", "exclusiveMaximum"} & set(rule), rule
