"""The noise scale of a method: as it is given, or the least that keeps a privacy budget by an
accountant's count.
"""

import functools

from feddep.methods.vesper import (
    PerturbedParameters,
    TruncatedParameters,
    VFGNNParameters,
    WeightParameters,
)
from feddep.privacy.accountant import PrivacyError
from feddep.privacy.vesper_accounting import ACCOUNTANTS, noise_for
from feddep.privacy.vesper_sensitivity import Correction, VerticalTraining
from feddep.training.config import TrainingConfig
from feddep.utils.errors import ConfigError

AGGREGATIONS = {
    "vfgnn": "vfgnn",
    "gap": "gap",
    "gap_authors": "gap",
    "vesper_gin": "gin",
    "vesper_gcn": "gcn",
}
"""Accountants' name of the message passing of each method with noise; see :func:`aggregation_of`.
"""


def aggregation_of(method: str, parameters: PerturbedParameters) -> str:
    """Accountants' name of the message passing of a run: that of its method, and ``vfgnn_gcn`` for
    VFGNN with GCN's weights.
    """
    weighted = isinstance(parameters, VFGNNParameters) and parameters.aggregation == "gcn"
    return "vfgnn_gcn" if weighted else AGGREGATIONS[method]


def noise_scale(
    nodes: int,
    edges: int,
    setting: TrainingConfig,
    parameters: PerturbedParameters,
    aggregation: str,
) -> float:
    """θ: ``theta``, or if ``epsilon`` is given the least noise that keeps it at δ by the accountant
    that is named.

    Args:
        nodes: number of training nodes N_T.
        edges: number of edges |E|, to check δ by.
        setting: batch size, layers and rounds.
        parameters: those of the method.
        aggregation: one of :data:`feddep.privacy.vesper_sensitivity.AGGREGATIONS`.

    Raises:
        ConfigError: if weights are to learn from a single release of several layers, or the
            accountant is ``certified`` and D neighbours are sampled in each step.
        PrivacyError: if no noise keeps ε, or a value is outside the accountant's range.
    """
    # The second layer's sums would change with weights that learn.
    learning = isinstance(parameters, WeightParameters) and parameters.weights == "detached"
    if learning and parameters.release == "one_shot" and setting.layers > 1:
        raise ConfigError(
            f"setting.layers is {setting.layers}; release: one_shot with weights: detached "
            "takes layers: 1"
        )
    if parameters.epsilon is None:
        return parameters.theta
    assert parameters.delta is not None
    accountant = ACCOUNTANTS[parameters.accountant](
        public_facts(nodes, setting, parameters, aggregation)
    )
    return noise_for(accountant, parameters.epsilon, parameters.delta, edges)


def public_facts(
    nodes: int, setting: TrainingConfig, parameters: PerturbedParameters, aggregation: str
) -> VerticalTraining:
    """Description of a run for an accountant; the arguments are those of :func:`noise_scale`."""
    if parameters.accountant == "certified" and parameters.bounding == "sampled":
        raise ConfigError(
            "bounding is sampled, but accountant is certified, which has a bound for: both, "
            "receiver, none"
        )
    truncated = parameters if isinstance(parameters, TruncatedParameters) else None
    if truncated is not None and truncated.accountant == "certified" and not truncated.degree_ratio:
        raise ConfigError(
            "degree_ratio is 0, but accountant is certified, which has no bound for degrees "
            "without noise"
        )
    one_shot = parameters.release == "one_shot"
    trained = parameters if isinstance(parameters, WeightParameters) else None
    correction = Correction(
        bounding="none" if parameters.bounding == "sampled" else parameters.bounding,
        weights="frozen" if trained is None else trained.weights,
        one_shot=one_shot,
        evaluations=0 if one_shot else setting.rounds,
        # ReLU ends the encoder; for `gap_authors`, which bounds no degrees, it makes no difference.
        nonnegative=True,
        gradient_ratio=1.0 if trained is None else trained.gradient_ratio,
        degree_ratio=(truncated and truncated.degree_ratio) or 1.0,
    )
    return VerticalTraining(
        nodes=nodes,
        batch=setting.batch_size,
        steps=setting.rounds * setting.local_epochs * -(-nodes // setting.batch_size),
        layers=setting.layers,
        degree=parameters.degree,
        aggregation=aggregation,
        least_degree=None if truncated is None else truncated.min_degree,
        correction=correction,
    )


def accounted_epsilon(
    nodes: int,
    setting: TrainingConfig,
    parameters: PerturbedParameters,
    aggregation: str,
    accountant: str,
    theta: float,
    delta: float,
) -> float | None:
    """ε at δ of noise θ by an accountant, whichever the parameters name; None where it has no bound
    for such a run.

    The first arguments are those of :func:`public_facts`.
    """
    try:
        facts = public_facts(nodes, setting, parameters.replace(accountant=accountant), aggregation)
        return _epsilon(accountant, facts, theta, delta)
    except (ConfigError, PrivacyError):
        return None


@functools.cache
def _epsilon(accountant: str, facts: VerticalTraining, theta: float, delta: float) -> float:
    return ACCOUNTANTS[accountant](facts).epsilon(theta, delta)
