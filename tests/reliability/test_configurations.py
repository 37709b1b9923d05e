"""Whatever a configuration says, it is accepted and can be run, or it is refused in one sentence."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from schema_values import DATASET, HOSTILE, SETTING, configurations, key_paths, placed
from trials import number_of

from feddep import api
from feddep.config.loading import MEASURED, entry, validate
from feddep.experiment import keys, plan
from feddep.methods import registry
from feddep.utils.errors import FeddepError
from feddep.utils.parameters import Parameters

BASE: dict[str, Any] = {
    "datasets": {DATASET: {"synthetic": {}}},
    **{"clients": [2], "seeds": [0], "settings": {SETTING: {}}, "methods": {"feddep": {}, "fedavg": {}}},
}
CAPS = {
    **{"rounds": 2, "local_epochs": 1, "pretraining_epochs": 2, "generator_epochs": 2, "generator_local_epochs": 2},
    **{
        "generator_federated_epochs": 2,
        "episodes": 1,
        "updates": 2,
        "hidden_channels": 16,
        "embedding": 16,
        "generator_width": 16,
    },
    **{"layers": 3, "depth": 3, "fanout": 9, "nodes": 100, "communities": 50, "features": 400, "degree_within": 1.0},
    **{"degree_between": 2.0, "prototypes": 200, "clients": 1000},
    **{"encoder_epochs": 2, "encoder_layers": 3, "decoder_layers": 3},
}
"""The most of what costs time; a larger value takes longer, and nothing else, or is refused by what depends on it."""


def check_sentence(error: FeddepError) -> str:
    """An error message is one line that a terminal can show, and not too long to read."""
    sentence = str(error)
    assert sentence.isprintable()
    assert 10 < len(sentence) < 1000
    return sentence


def subclasses(of: type[Parameters]) -> Iterator[type[Parameters]]:
    """The project's models, however far derived."""
    for each in of.__subclasses__():
        if each.__module__.startswith("feddep."):
            yield each
        yield from subclasses(each)


def numbers(schema: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every rule for a number in a schema."""
    if isinstance(schema, dict):
        if schema.get("type") in ("integer", "number"):
            yield where, schema
        for key, inner in schema.items():
            if key != "default":
                yield from numbers(inner, f"{where}.{key}")
    elif isinstance(schema, list):
        for inner in schema:
            yield from numbers(inner, where)


def test_every_number_has_a_least_and_a_largest_value():
    assert registry.methods()  # imports all methods
    rules = [rule for model in subclasses(Parameters) for rule in numbers(model.model_json_schema(), model.__name__)]
    assert len(rules) > 100
    for where, rule in rules:
        assert {"minimum", "exclusiveMinimum"} & set(rule), where
        assert {"maximum", "exclusiveMaximum"} & set(rule), where


@pytest.mark.parametrize("path", list(dict.fromkeys(key_paths())), ids=lambda path: ".".join(map(str, path)))
def test_any_value_of_any_key_is_accepted_or_refused_by_its_name(path: tuple[Any, ...]):
    refused = 0
    for value in HOSTILE:
        try:
            config = validate(placed(BASE, path, value))
            plan.all_runs(config)
            for key in MEASURED:
                plan.measured_runs(config, key)
        except FeddepError as error:
            sentence = check_sentence(error)
            assert str(path[0]) in sentence
            name = next(part for part in reversed(path) if isinstance(part, str))
            assert name in sentence or "nested" in sentence or "values" in sentence, sentence
            check_hint(path, sentence)
            refused += 1
    assert refused > len(HOSTILE) / 3


def check_hint(path: tuple[Any, ...], sentence: str) -> None:
    """What a sentence says to write for the value at a path is not refused in its turn."""
    where = ".".join(map(str, path))
    hint = re.fullmatch(r".* \(write (.*?)(?: without quotes.*| for the defaults)?\)", sentence)
    if hint and sentence.startswith(f"{where} is ") and "…" not in hint[1]:
        assert not refusal(placed(BASE, path, yaml.safe_load(hint[1]))).startswith(where), sentence


def refusal(raw: dict[str, Any]) -> str:
    """The sentence with which a configuration is refused, or nothing where it is accepted."""
    try:
        validate(raw)
    except FeddepError as error:
        return str(error)
    return ""


def capped(options: dict[str, Any]) -> dict[str, Any]:
    """Options with the costly ones lowered."""
    return {key: min(value, CAPS[key]) if key in CAPS and value is not None else value for key, value in options.items()}


def run(raw: dict[str, Any]) -> None:
    """Run the first run of a configuration in a small way, and make sure that its results can be written and mean something."""
    config = validate(raw)
    first = plan.all_runs(config)[0]
    dataset, setting = entry(config, "datasets", first.dataset), entry(config, "settings", first.setting)
    parameters = capped(entry(config, "methods", first.method, first.dataset))
    graph = api.synthetic_graph(**capped(dataset["synthetic"]))
    split = api.split(graph, first.seed, **config["split"])
    partition = first.clients and api.partition(graph, first.clients, first.seed, **keys.partition_options(config, first.dataset))
    result = api.run(
        first.method.partition(",")[0],
        graph,
        split,
        partition,
        setting=capped(setting),
        parameters=parameters,
        **{key: dataset[key] for key in ("features", "labelled")},
        seed=first.seed,
        device="cpu",
    )
    json.dumps([result.accuracy, result.validation, result.specification, result.history.to_dict("list")], allow_nan=False)
    assert all(0 <= share <= 1 for share in [*result.accuracy.values(), *result.validation.values()])
    assert all(bool(tensor.isfinite().all()) for tensor in result.weights.values())


@pytest.mark.parametrize(
    ("method", "setting", "parameters", "refused"),
    [
        ("fedavg", {"fanout": 999, "layers": 1}, {}, ""),  # more than any node has neighbours
        ("fedavg", {"fanout": 10_000, "layers": 1}, {}, "a fanout of 10000 makes trees of 10001 nodes in 1 layers"),
        ("fedavg", {"fanout": 9, "layers": 5}, {}, "a fanout of 9 makes trees of 100000 nodes in 5 layers"),
        ("feddep", {"fanout": 9}, {"depth": 5}, "a fanout of 9 makes trees of 100000 nodes"),
        ("fedavg", {"batch_size": 10**6}, {}, ""),
        ("feddep", {}, {"prototypes": 1000, "max_generated": 50}, ""),
        ("feddep", {}, {"hidden_share": 1.0, "hidden_from": "all"}, "hides all .* nodes of client 0; lower hidden_share"),
        ("fedgsl", {}, {"edges": 50, "refresh": 10**6}, ""),
        ("halo", {}, {"hops": 10}, ""),
    ],
)
def test_what_is_too_large_for_a_graph_works_or_is_refused(
    method: str, setting: dict[str, Any], parameters: dict[str, Any], refused: str
):
    graph = api.synthetic_graph(nodes=80, communities=4)
    few = {"pretraining_epochs": 1, "embedding": 4} if method == "feddep" else {}
    given = {"setting": {"rounds": 1, "hidden_channels": 4, **setting}, "parameters": {**few, **parameters}, "device": "cpu"}
    if refused:
        with pytest.raises(FeddepError, match=refused):
            api.run(method, graph, api.split(graph), api.partition(graph, 2), **given)
    else:
        assert 0 <= api.run(method, graph, api.split(graph), api.partition(graph, 2), **given).accuracy["best"] <= 1


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_any_configuration_runs_or_is_refused_in_one_sentence():
    outcomes: dict[str, int] = {"ran": 0, "refused": 0}

    @given(raw=configurations())
    @settings(
        max_examples=number_of("configurations"),
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    def attempt(raw: dict[str, Any]) -> None:
        try:
            run(raw)
        except FeddepError as error:
            check_sentence(error)
            outcomes["refused"] += 1
        else:
            outcomes["ran"] += 1

    attempt()
    assert min(outcomes.values()) > number_of("configurations") / 5, outcomes
