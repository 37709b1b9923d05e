"""The noise that a budget takes: the accountant is told what the run does, and θ keeps the budget and no more."""

from typing import Any

import pytest

from feddep.methods.vesper import GAPParameters, PerturbedParameters, TruncatedParameters, VFGNNParameters, WeightParameters
from feddep.methods.vesper.noise_budget import noise_scale, public_facts
from feddep.privacy.accountant import PrivacyError
from feddep.privacy.vesper_accounting import accountant_named
from feddep.privacy.vesper_sensitivity import VerticalTraining
from feddep.training.task import Task
from feddep.utils.errors import ConfigError
from method_tasks import ROUNDS, run_on, task_of

STOPPED = {"weights": "stopped", "bounding": "both"}
BUDGETS: list[tuple[PerturbedParameters, str]] = [
    (WeightParameters(epsilon=8.0, accountant="library", degree=3), "gin"),
    (WeightParameters(epsilon=8.0, degree=3, **STOPPED), "gin"),
    (TruncatedParameters(epsilon=16.0, degree=3, degree_ratio=2.0, **STOPPED), "gcn"),
    (GAPParameters(epsilon=4.0, release="once", bounding="both"), "gap"),
    (GAPParameters(epsilon=4.0, accountant="holds", delta=1e-4, batches="shuffled"), "gap"),
    (VFGNNParameters(epsilon=32.0, weights="frozen", bounding="both", degree=3), "vfgnn"),
]


def task() -> Task:
    return task_of("vesper_gin")


def noise(parameters: PerturbedParameters, aggregation: str) -> float:
    return noise_scale(len(task().split.train), task().graph.num_edges, task().setting, parameters, aggregation)


def facts_of(parameters: PerturbedParameters, aggregation: str) -> VerticalTraining:
    return public_facts(len(task().split.train), task().setting, parameters, aggregation)


@pytest.mark.parametrize(("parameters", "aggregation"), BUDGETS)
def test_the_noise_keeps_the_budget_and_no_more(parameters, aggregation):
    delta = parameters.delta or 1 / (task().graph.num_edges + 1)
    theta = noise(parameters, aggregation)
    accountant = accountant_named(parameters.accountant, facts_of(parameters, aggregation))
    assert accountant.epsilon(theta, delta) <= parameters.epsilon
    assert accountant.epsilon(0.99 * theta, delta) > parameters.epsilon


def test_the_accountant_is_told_what_the_run_does():
    parameters = TruncatedParameters(degree=5, min_degree=2, batches="shuffled", degree_ratio=2.0, gradient_ratio=3.0, **STOPPED)
    facts = facts_of(parameters, "gcn")
    assert (facts.nodes, facts.batch, facts.steps, facts.layers) == (144, 16, ROUNDS * 9, 2)
    assert (facts.degree, facts.least_degree, facts.shuffled, facts.aggregation) == (5, 2, True, "gcn")
    found = facts.correction
    assert (found.bounding, found.weights, found.once, found.evaluations) == ("both", "stopped", False, ROUNDS)
    assert (found.degree_ratio, found.gradient_ratio, found.nonnegative) == (2.0, 3.0, True)
    once = facts_of(GAPParameters(release="once", bounding="both"), "gap").correction
    assert (once.weights, once.once, once.evaluations) == ("frozen", True, 0)


def test_without_a_budget_the_noise_is_as_given():
    assert noise(WeightParameters(theta=0.3), "gin") == 0.3


def test_a_run_by_budget_is_the_run_with_that_noise():
    budget = {"epsilon": 32.0, "accountant": "holds"}
    theta = noise(WeightParameters(**budget), "gin")
    found, same = (run_on(task(), "vesper_gin", **options).histories[0] for options in (budget, {"theta": theta}))
    assert found.loss == same.loss


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({}, ConfigError, "bounding is sampled, but accountant is corrected, which has a bound for: both, receiver, none"),
        ({"bounding": "both"}, PrivacyError, "no noise keeps ε = 8 .* there is no finite ε"),
        ({"accountant": "holds", "epsilon": 1e-6, "delta": 1e-9}, PrivacyError, "no noise keeps ε = 1e-06"),
        ({"accountant": "library", "delta": 0.5}, PrivacyError, r"δ is 0\.5; it must be below 1/\|E\|"),
    ],
)
def test_a_budget_that_no_noise_keeps_is_a_mistake(options: dict[str, Any], error: type[Exception], sentence: str):
    with pytest.raises(error, match=sentence):
        noise(WeightParameters(**{"epsilon": 8.0, **options}), "gin")


def test_degrees_without_noise_have_no_guarantee():
    with pytest.raises(ConfigError, match="degree_ratio is 0, but accountant is corrected"):
        noise(TruncatedParameters(epsilon=8.0, **STOPPED), "gcn")
