"""Configurations drawn from the schema: valid ones with values at their bounds, and such with one hostile value."""

import copy
import itertools
import math
import sys
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from feddep.config.reference import json_schema

SCHEMA = json_schema()
SETTING, DATASET = "quick", "tiny"
"""The entries that drawn configurations have."""
HOSTILE: list[Any] = [
    *(None, True, [], {}, "", " ", "3", "1e-3", "null", "${HOME}", "a\nb", "über", "\u202e", "\ud800", "\x00", "é" * 10_000),
    *(-1, 0, -0.5, 2.5, 10**9, 10**30, -(10**30), 10**5000, 1e-320, 1e308, -1e308, math.nan, math.inf, -math.inf, 2**63),
    *([None], [[]], [1, 1], [-1], ["3"], [10**30], {"a": 1}, {"a": {}}, {3: 4}, {None: None}, {"": 0}, {DATASET: None}),
    *({DATASET: {}}, {DATASET: [1]}, [{}], b"bytes", (1, 2), {1, 2}, sys.float_info.max),
]
"""What no key takes, or few."""
_DEEP: list[Any] = []
for _ in range(5000):
    _DEEP = [_DEEP]
_ENDLESS: dict[str, Any] = {}
_ENDLESS["a"] = _ENDLESS
_BILLIONS: list[Any] = [1] * 10
for _ in range(9):
    _BILLIONS = [_BILLIONS] * 10
HOSTILE += [_DEEP, _ENDLESS, _BILLIONS]

_FEW_OPTIONS = {
    "rounds": [[1, 2], 3, []],
    "batch_size": [8, [8, 16]],
    "embedding": [3, {DATASET: 4}],
    "prototypes": [None, [2, 3]],
}
_SPECIAL: dict[str, st.SearchStrategy[Any]] = {
    "split": st.sampled_from([{}, {"train": 0.6, "val": 0.2, "test": 0.2}, {"train": 0.98, "val": 0.01, "test": 0.01}]),
    "output": st.just("results"),
    "directory": st.just("results/records"),
    "mirror": st.sampled_from([None, "/nowhere"]),
    "device": st.just("cpu"),
    "setting": st.just(SETTING),
    "dataset": st.sampled_from([None, DATASET]),
    "name": st.sampled_from(["one", "two"]),
    "title": st.sampled_from(["", "A title", "$x_1$ | *"]),
    **dict.fromkeys(("membership", "canaries", "properties", "reconstruction"), st.just(["feddep"])),
    "labelled": st.sampled_from([None, None, 0.5, 0.1, 5e-324, 1.0]),
    "path": st.sampled_from([*[None] * 9, "graph.npz"]),  # refused, as there is a synthetic graph
}
"""Values of keys whose meaning the schema cannot say."""
FITTING = {
    "feddep_wo_dgen": {"depth": 0},
    "feddep_joint": {"inference": "zero"},
    "feddep_wo_nfdp": {"bernoulli_rate": 1.0},
    "locsage_plus": {"generator_federated_epochs": 0},
}
"""The value that a method's parameter must have, which the schema does not say."""


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """What a reference refers to."""
    while "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def values(schema: dict[str, Any], key: str = "") -> st.SearchStrategy[Any]:
    """Values that a part of the schema allows, often its least, its largest or its default."""
    schema = resolved(schema)
    if key in _SPECIAL:
        return _SPECIAL[key]
    if "anyOf" in schema:
        return st.one_of(*(values(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema["type"]
    if kind in ("integer", "number"):
        return _numbers(schema)
    if kind == "array":
        least = schema.get("minItems", 0)
        return st.lists(values(schema["items"]), min_size=least, max_size=least + 1, unique_by=repr)
    if kind == "object":
        return _objects(schema)
    return {"boolean": st.booleans(), "null": st.none(), "string": st.sampled_from(["fedavg", DATASET, SETTING])}[kind]


def _numbers(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if schema["type"] == "integer":
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in schema))
        high = schema.get("maximum", schema.get("exclusiveMaximum", 0) - ("exclusiveMaximum" in schema))
        return st.sampled_from([low, high, *([schema["default"]] if "default" in schema else [])]) | st.integers(
            low, min(high, 9)
        )
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    exclusive = {"exclude_min": "exclusiveMinimum" in schema, "exclude_max": "exclusiveMaximum" in schema}
    ends = [] if exclusive["exclude_min"] else [float(low)]
    ends += [] if exclusive["exclude_max"] else [float(high)]
    return st.sampled_from([*ends, math.nextafter(low, high), math.nextafter(high, low)]) | st.floats(low, high, **exclusive)


def _objects(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    if "properties" in schema:
        return _some(schema["properties"], frozenset(schema.get("required", ())))
    inner = schema.get("additionalProperties")
    if isinstance(inner, dict) and inner.get("additionalProperties") is True:
        options = st.dictionaries(st.sampled_from(list(_FEW_OPTIONS)), st.none(), max_size=2).flatmap(
            lambda keys: st.fixed_dictionaries({key: st.sampled_from(_FEW_OPTIONS[key]) for key in keys})
        )
        return st.dictionaries(st.sampled_from([SETTING, DATASET, "feddep", "fedavg"]), options, min_size=1, max_size=2)
    return st.fixed_dictionaries({DATASET: values(inner)}) if isinstance(inner, dict) else st.just({})


@st.composite
def _some(draw: st.DrawFn, properties: dict[str, Any], required: frozenset[str]) -> dict[str, Any]:
    """Some of an object's keys."""
    return {
        key: draw(values(schema, key)) for key, schema in properties.items() if key in required or draw(st.integers(0, 3)) == 0
    }


@st.composite
def synthetic_options(draw: st.DrawFn) -> dict[str, Any]:
    """Options of a synthetic graph; those that depend on each other fit in nine of ten."""
    drawn: dict[str, Any] = draw(values(SCHEMA["$defs"]["Synthetic"]))
    if draw(st.integers(0, 9)):
        fitting = {key: drawn[key] for key in ("seed", "signal") if key in drawn}
        sizes = st.fixed_dictionaries(
            {"classes": st.sampled_from([2, 4, 12]), "words": st.sampled_from([1, 8]), "nodes": st.integers(60, 100)}
        )
        degrees = {key: draw(st.sampled_from([0.0, 0.3, 3.0])) for key in ("degree_within", "degree_between")}
        others = {"features": draw(st.sampled_from([100, 300])), "isolated": draw(st.sampled_from([0.0, 0.2]))}
        return {**fitting, **draw(sizes), **degrees, **others}
    return drawn


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    """A configuration of one dataset, setting and method; one in four has a hostile value somewhere."""
    top = SCHEMA["properties"]
    rare = draw(st.integers(0, 7)) == 0
    chosen = {key: values(schema, key) for key, schema in top.items() if rare or key in ("split", "partition", "seeds")}
    drawn: dict[str, Any] = {key: draw(each) for key, each in chosen.items() if draw(st.booleans())}
    method = draw(st.sampled_from(list(top["methods"]["properties"])))
    options = draw(values(SCHEMA["$defs"]["Dataset"]))
    drawn |= {
        "datasets": {DATASET: {**options, "synthetic": draw(synthetic_options())}},
        "clients": draw(st.sampled_from([[2], [3], [1], [2, 3], [3], [1000]])),
        "seeds": drawn.get("seeds", [0]),
        "settings": {SETTING: draw(values(SCHEMA["$defs"]["TrainingConfig"]))},
        "methods": {method: draw(values(top["methods"]["properties"][method]))},
    }
    if draw(st.integers(0, 9)):
        drawn["methods"][method] |= FITTING.get(method, {})
    if draw(st.integers(0, 3)) == 0:
        path = draw(st.sampled_from(list(paths(drawn))))
        drawn = with_value(drawn, path, draw(st.sampled_from(HOSTILE)))
    return drawn


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where in a configuration there are values."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from paths(item, (*path, key))


def with_value(config: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy with another value at a path."""
    changed = copy.deepcopy(config)
    place: Any = changed
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return changed


def key_paths(schema: dict[str, Any] = SCHEMA, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every key that the schema knows; an entry of a mapping or list has a name or number that there is."""
    schema = resolved(schema)
    for key, inner in schema.get("properties", {}).items():
        yield (*path, key)
        yield from key_paths(inner, (*path, key))
    name = {"datasets": DATASET, "settings": SETTING}.get(path[-1] if path else "")
    for inner in schema.get("patternProperties", {}).values():
        yield (*path, name)
        yield from key_paths(inner, (*path, name))
    if isinstance(schema.get("items"), dict):
        yield (*path, 0)
        yield from key_paths(schema["items"], (*path, 0))
    for inner in schema.get("anyOf", ()):
        yield from key_paths(inner, path)


def placed(config: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy with a value at a path of :func:`key_paths`, and what has to stand around it."""
    changed = copy.deepcopy(config)
    place: Any = changed
    for part, after in itertools.pairwise(path):
        if isinstance(part, int):
            place[:] = place[:1] or [{}]
        elif place.get(part) is None:
            place[part] = [] if isinstance(after, int) else {}
        if part == "studies":
            place[part] = place[part] or [{"name": "one", "kind": "sweep", "runs": [{}]}]
        if part == "tables":
            place[part] = place[part] or [{"setting": SETTING}]
        place = place[part]
    if isinstance(path[-1], int):
        place[:] = [value]
    else:
        place[path[-1]] = value
    return changed
