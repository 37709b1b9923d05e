"""Noise and guarantees from public sizes: those of the run itself, and what is proven of them."""

import math
from typing import Any

import pytest

from feddep.datasets.public_graphs import REGISTRY
from feddep.datasets.synthetic import planted_partition
from feddep.graph.split import random_split
from feddep.methods import registry
from feddep.methods.vesper import split_training
from feddep.methods.vesper.noise_budget import AGGREGATIONS, noise_scale
from feddep.privacy import vesper_accounting
from feddep.training.config import TrainingConfig
from feddep.training.task import Task
from feddep.utils.errors import ConfigError
from studies.vesper.budgets import budget, training_nodes

CORA_EDGES = REGISTRY["cora"].edges
SHARES = {"train": 0.6, "val": 0.2, "test": 0.2}
SETTING = {"rounds": 3, "batch_size": 16, "hidden_channels": 8}
TINY = {"name": "tiny", "labelled": None, "synthetic": {"nodes": 121}}
CORA = {"name": "cora", "labelled": None, "synthetic": None}
BOUNDED = {"bounding": "both", "accountant": "certified", "epsilon": 8.0, "delta": 1e-4}


def specification(name: str, dataset: dict[str, Any] = CORA, **options: Any) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "split": SHARES,
        "setting": SETTING,
        "method": {"name": name, **options},
    }


@pytest.mark.parametrize("n", [20, 121, 240, 333, 2708, 19717])
@pytest.mark.parametrize(
    "shares", [(0.6, 0.2, 0.2), (0.1, 0.2, 0.7), (0.3, 0.1, 0.1), (0.7, 0.1, 0.2)]
)
def test_the_number_of_training_nodes_is_that_of_the_split(
    n: int, shares: tuple[float, ...]
) -> None:
    fractions = dict(zip(("train", "val", "test"), shares, strict=True))
    split = random_split(n, fractions, seed=0)
    assert training_nodes(n, fractions) == len(split.train)
    assert training_nodes(n, fractions, 0.09) == len(split.labelled(0.09, seed=0).train)


@pytest.mark.parametrize("labelled", [None, 0.3])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vesper_gin", {"theta": 0.7}),
        ("vfgnn", {"accountant": "no_amplification", "epsilon": 4.0}),
        ("gap", {"accountant": "no_amplification", "epsilon": 8.0, "degree": 5}),
        ("vesper_gin", {**BOUNDED, "weights": "detached"}),
        ("vesper_gcn", {**BOUNDED, "weights": "dpsgd", "degree_ratio": 2.0}),
    ],
)
def test_the_noise_is_what_a_run_uses(
    name: str, options: dict[str, Any], labelled: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What it is asked to train.
    monkeypatch.setattr(split_training, "train", lambda task, protocol: protocol)
    specified = specification(name, {**TINY, "labelled": labelled}, **{**options, "delta": 1e-4})
    method, parameters = registry.configured(specified["method"])
    graph = planted_partition(121, 4, 12, 32, 6.0, 1.0, 8, 0.5, 0)
    setting = TrainingConfig(**SETTING)
    task = Task("tiny", graph, random_split(121, SHARES, 0).labelled(labelled, 0), None, setting, 0)
    module, _, function = method.function.partition(":")
    assert module == split_training.__name__
    assert (
        budget(specified).theta
        == getattr(split_training, function)(task, parameters).design.theta
        > 0
    )


def test_the_noise_keeps_a_budget_of_the_papers_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vesper_accounting, "_LIBRARY_ORDERS", [2, 4, 8, 16])  # to be quick
    specified = specification("vesper_gcn", accountant="rdp", epsilon=5.0, delta=1e-4, degree=7)
    _, parameters = registry.configured(specified["method"])
    found = budget(specified)
    assert found.theta == noise_scale(
        1624, CORA_EDGES, TrainingConfig(**SETTING), parameters, AGGREGATIONS["vesper_gcn"]
    )
    assert found.delta == 1e-4
    assert found.paper_epsilon == pytest.approx(5.0, rel=1e-3)
    assert found.paper_epsilon <= 5.0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vesper_gin", {"weights": "detached"}),
        ("vesper_gcn", {"weights": "detached", "degree_ratio": 2.0}),
        ("vfgnn", {"weights": "frozen"}),
        ("gap", {}),
    ],
)
def test_the_noise_keeps_a_budget_of_the_certified_account(
    name: str, options: dict[str, Any]
) -> None:
    found = budget(specification(name, **BOUNDED, **options))
    assert found.guarantee == pytest.approx(8.0, rel=1e-3)
    assert found.guarantee <= found.epsilon == 8.0
    assert math.isfinite(found.paper_epsilon)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vesper_gin", {"bounding": "both"}),  # weights are trained
        ("vesper_gin", {"weights": "frozen"}),  # neighbours are sampled
        ("vesper_gcn", {"bounding": "both", "weights": "frozen"}),  # degrees have no noise
        ("vfgnn", {"bounding": "none", "weights": "frozen"}),  # any number of rows may change
    ],
)
def test_what_is_not_proven_is_infinite(name: str, options: dict[str, Any]) -> None:
    found = budget(specification(name, theta=5.0, **options))
    assert found.delta == 2708**-2
    assert found.guarantee == math.inf
    assert 0 < found.paper_epsilon < math.inf
    assert math.isnan(found.epsilon)


def test_what_does_not_apply_is_left_out() -> None:
    once = budget(specification("gap", release="one_shot", bounding="none", theta=5.0))
    assert math.isnan(once.paper_epsilon)
    assert 0 < once.guarantee < math.inf
    # Proposition 2 starts at 2.
    least = budget(specification("vesper_gcn", min_degree=1, theta=5.0))
    assert math.isnan(least.paper_epsilon)
    plain = budget(specification("vertical_gin"))
    assert all(map(math.isnan, (plain.theta, plain.delta, plain.guarantee, plain.paper_epsilon)))
    zero = budget(specification("vesper_gin", TINY, theta=0.0))
    assert (zero.theta, zero.guarantee, zero.paper_epsilon) == (0, math.inf, math.inf)


def test_mistakes_are_errors() -> None:
    with pytest.raises(ConfigError):
        budget(specification("fedavg"))


@pytest.mark.parametrize("changes", [{"split": "class_balanced"}, {"name": "mine"}])
def test_what_has_no_public_number_of_training_nodes_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        budget(specification("gap", {**CORA, **changes}, theta=5.0))
