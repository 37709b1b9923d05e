"""What an accountant promises for a run of a method with noise."""

import functools

from feddep.methods.vesper import PerturbedParameters
from feddep.methods.vesper.noise_budget import public_facts
from feddep.privacy.accountant import PrivacyError
from feddep.privacy.vesper_accounting import accountant_named
from feddep.privacy.vesper_sensitivity import VerticalTraining
from feddep.training.config import TrainingConfig
from feddep.utils.errors import ConfigError


def promised_epsilon(
    nodes: int,
    setting: TrainingConfig,
    parameters: PerturbedParameters,
    aggregation: str,
    accountant: str,
    theta: float,
    delta: float,
) -> float | None:
    """ε at δ of noise θ by an accountant, whichever the parameters name; None where it has no bound for such a run.

    The first arguments are those of :func:`feddep.methods.vesper.noise_budget.public_facts`.
    """
    try:
        facts = public_facts(nodes, setting, parameters.replace(accountant=accountant), aggregation)
        return _epsilon(accountant, facts, theta, delta)
    except (ConfigError, PrivacyError):
        return None


@functools.cache
def _epsilon(accountant: str, facts: VerticalTraining, theta: float, delta: float) -> float:
    return accountant_named(accountant, facts).epsilon(theta, delta)
