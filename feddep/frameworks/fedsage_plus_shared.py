"""FedSage with one NeighGen for all clients, obtained by FedAvg (FedSage, Appendix D.2), instead of one for each.

All else is FedSage+.  The paper reports it to be worse than FedSage+ and than FedSage without a generator.

Assumes: nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from feddep.frameworks import fedsage_plus
from feddep.neighbour_generation import federated
from feddep.problem import Outcome, Problem
from feddep.steps import Step, make_all

TITLE = "FedSage+ with a shared NeighGen"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters(fedsage_plus.Parameters):
    """Those of FedSage+; there are as many rounds as both kinds of epochs together, and ``cross_weight`` is not used."""


def steps(parameters: Parameters) -> Sequence[Step]:
    """NeighGen is trained by FedAvg."""
    return (Step("generator", federated.generate_shared, federated.USES),)


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """FedSage+, its generators' weights averaged."""
    made = make_all(problem, parameters, steps(parameters))
    return fedsage_plus.train_classifier(problem, made["generator"])
