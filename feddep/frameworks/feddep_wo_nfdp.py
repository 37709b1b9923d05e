"""FedDEP without noise-free DP (FedDEP, Section 4.1 (10), "FedDEP w/o NFDP"): DP-SGD in its place, σ = 2.0.

All is FedDEP, but the clients train the classifier by DP-SGD (:mod:`feddep.privacy.dpsgd`) and the Bernoulli sampler is off.
Neighbours are sampled still, as GraphSAGE does for its mini-batches; it is no longer what protects anybody.

The paper says no more than the σ.  Ours to decide: the clipping norm, FedGNN's, so that the two rows compare; that the
classifier is what is trained so, as its weights are what is sent in every round; and that a batch is a Poisson sample, as
the accounting wants.  The prototypes are shared as in FedDEP: noise in the classifier's gradients does not protect them.

Assumes: prototypes shared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from feddep.federation.ledger import merged
from feddep.frameworks import feddep
from feddep.privacy.dpsgd import Privacy, PrivateLearner
from feddep.problem import Outcome, Problem
from feddep.steps import Step, make_all

TITLE = "FedDEP w/o NFDP"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters(feddep.Parameters):
    """Those of FedDEP, ``bernoulli_rate`` being 1, and the noise.

    Attributes:
        sigma: noise multiplier σ.  Paper: 2.0 in Table 2.
        clip: norm C that an example's gradient is clipped to.  Ours: what does best for FedGNN on validation nodes.
    """

    sigma: float = 2.0
    clip: float = 2.0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: as for FedDEP, where there is a Bernoulli sampler, and for noise or a norm that means nothing.
        """
        super().__post_init__()
        if self.bernoulli_rate != 1:
            raise ValueError("bernoulli_rate must be 1 without noise-free DP")
        Privacy(self.sigma, self.clip)


def steps(parameters: Parameters) -> Sequence[Step]:
    """Those of FedDEP."""
    return feddep.steps(parameters)


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """FedDEP, its classifier trained by DP-SGD."""
    made = make_all(problem, parameters, steps(parameters))
    learner = partial(PrivateLearner, privacy=Privacy(parameters.sigma, parameters.clip))
    outcome = feddep.train_classifier(problem, parameters, made["generator"].of_clients("mended"), learner)
    return Outcome(outcome.histories, merged(*(step.ledger for step in made.values()), outcome.ledger))
