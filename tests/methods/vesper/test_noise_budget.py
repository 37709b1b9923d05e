"""The noise that a budget takes: the accountant is told what the run does."""

from typing import Any

import pytest

from feddep.methods.vesper import (
    PerturbedParameters,
    TruncatedParameters,
    WeightParameters,
)
from feddep.methods.vesper.noise_budget import accounted_epsilon, noise_scale, public_facts
from feddep.privacy.accountant import PrivacyError
from feddep.privacy.vesper_accounting import ACCOUNTANTS
from feddep.privacy.vesper_sensitivity import Correction, VerticalTraining
from feddep.utils.errors import ConfigError
from method_tasks import ROUNDS, task_of

DETACHED: dict[str, Any] = {"weights": "detached", "bounding": "both"}

TASK = task_of("vesper_gin")
NODES = len(TASK.split.train)


def noise(parameters: PerturbedParameters, aggregation: str) -> float:
    return noise_scale(NODES, TASK.graph.num_edges, TASK.setting, parameters, aggregation)


def facts_of(parameters: PerturbedParameters, aggregation: str, **setting: Any) -> VerticalTraining:
    return public_facts(NODES, TASK.setting.replace(**setting), parameters, aggregation)


def test_the_accountant_is_told_what_the_run_does():
    parameters = TruncatedParameters(
        degree=5, min_degree=2, degree_ratio=2.0, gradient_ratio=3.0, **DETACHED
    )
    assert facts_of(parameters, "gcn", local_epochs=2) == VerticalTraining(
        nodes=144,
        batch=16,
        steps=ROUNDS * 2 * 9,
        layers=2,
        degree=5,
        aggregation="gcn",
        least_degree=2,
        correction=Correction(
            evaluations=ROUNDS,
            nonnegative=True,
            degree_ratio=2.0,
            gradient_ratio=3.0,
            **DETACHED,
        ),
    )
    once = facts_of(PerturbedParameters(release="one_shot", bounding="both"), "gap").correction
    assert once == Correction(weights="frozen", one_shot=True, nonnegative=True)


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
    bounded, sampled = WeightParameters(degree=3, **DETACHED), WeightParameters()
    found = [
        accounted_epsilon(NODES, TASK.setting, each, "gin", "certified", 5.0, 1e-5)
        for each in (bounded, sampled)
    ]
    assert found == [ACCOUNTANTS["certified"](facts_of(bounded, "gin")).epsilon(5.0, 1e-5), None]
