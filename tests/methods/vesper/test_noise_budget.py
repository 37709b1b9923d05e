"""The noise that a budget takes: the accountant is told what the run does, and θ keeps the budget
and no more.
"""

import pytest

from feddep.methods.vesper import (
    GAPParameters,
    PerturbedParameters,
    TruncatedParameters,
    VFGNNParameters,
    WeightParameters,
)
from feddep.methods.vesper.noise_budget import accounted_epsilon, noise_scale, public_facts
from feddep.privacy.accountant import PrivacyError
from feddep.privacy.vesper_accounting import ACCOUNTANTS
from feddep.privacy.vesper_sensitivity import VerticalTraining
from feddep.training.task import Task
from feddep.utils.errors import ConfigError
from method_tasks import ROUNDS, task_of

DETACHED = {"weights": "detached", "bounding": "both"}
BUDGETS: list[tuple[PerturbedParameters, str]] = [
    (WeightParameters(epsilon=8.0, delta=5e-4, accountant="rdp", degree=3), "gin"),
    (WeightParameters(epsilon=8.0, delta=5e-4, degree=3, **DETACHED), "gin"),
    (TruncatedParameters(epsilon=16.0, delta=5e-4, degree=3, degree_ratio=2.0, **DETACHED), "gcn"),
    (GAPParameters(epsilon=4.0, delta=5e-4, release="one_shot", bounding="both"), "gap"),
    (GAPParameters(epsilon=4.0, accountant="no_amplification", delta=1e-4), "gap"),
    (
        VFGNNParameters(epsilon=32.0, delta=5e-4, weights="frozen", bounding="both", degree=3),
        "vfgnn",
    ),
]


def task() -> Task:
    return task_of("vesper_gin")


def noise(parameters: PerturbedParameters, aggregation: str) -> float:
    return noise_scale(
        len(task().split.train), task().graph.num_edges, task().setting, parameters, aggregation
    )


def facts_of(parameters: PerturbedParameters, aggregation: str) -> VerticalTraining:
    return public_facts(len(task().split.train), task().setting, parameters, aggregation)


@pytest.mark.parametrize(("parameters", "aggregation"), BUDGETS)
def test_the_noise_keeps_the_budget_and_no_more(parameters, aggregation):
    delta = parameters.delta
    theta = noise(parameters, aggregation)
    accountant = ACCOUNTANTS[parameters.accountant](facts_of(parameters, aggregation))
    assert accountant.epsilon(theta, delta) <= parameters.epsilon
    assert accountant.epsilon(0.99 * theta, delta) > parameters.epsilon


def test_the_accountant_is_told_what_the_run_does():
    parameters = TruncatedParameters(
        degree=5, min_degree=2, degree_ratio=2.0, gradient_ratio=3.0, **DETACHED
    )
    facts = facts_of(parameters, "gcn")
    assert (facts.nodes, facts.batch, facts.steps, facts.layers) == (144, 16, ROUNDS * 9, 2)
    assert (facts.degree, facts.least_degree, facts.aggregation) == (5, 2, "gcn")
    found = facts.correction
    assert (found.bounding, found.weights, found.one_shot, found.evaluations) == (
        "both",
        "detached",
        False,
        ROUNDS,
    )
    assert (found.degree_ratio, found.gradient_ratio, found.nonnegative) == (2.0, 3.0, True)
    once = facts_of(GAPParameters(release="one_shot", bounding="both"), "gap").correction
    assert (once.weights, once.one_shot, once.evaluations) == ("frozen", True, 0)


def test_without_a_budget_the_noise_is_as_given():
    assert noise(WeightParameters(theta=0.3), "gin") == 0.3


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        (
            WeightParameters(epsilon=8.0, delta=5e-4),
            ConfigError,
        ),  # neighbours are sampled, for which the certified account has no bound
        (
            WeightParameters(epsilon=8.0, delta=5e-4, bounding="both"),
            PrivacyError,
        ),  # weights learn from edges without noise
        (WeightParameters(epsilon=1e-6, accountant="no_amplification", delta=1e-9), PrivacyError),
        (WeightParameters(epsilon=8.0, accountant="rdp", delta=0.5), PrivacyError),  # above 1/|E|
        (
            TruncatedParameters(epsilon=8.0, delta=5e-4, **DETACHED),
            ConfigError,
        ),  # degrees have no noise
    ],
)
def test_a_budget_that_no_noise_keeps_is_a_mistake(
    parameters: PerturbedParameters, error: type[Exception]
):
    with pytest.raises(error):
        noise(parameters, "gcn" if isinstance(parameters, TruncatedParameters) else "gin")


def test_an_account_of_any_run_is_a_number_or_none():
    given = task(), WeightParameters(degree=3, **DETACHED), "gin"
    facts = len(given[0].split.train), given[0].setting, *given[1:]
    expected = ACCOUNTANTS["certified"](facts_of(*given[1:])).epsilon(5.0, 1e-5)
    assert accounted_epsilon(*facts, "certified", 5.0, 1e-5) == expected
    assert (
        accounted_epsilon(facts[0], facts[1], WeightParameters(), "gin", "certified", 5.0, 1e-5)
        is None
    )
