"""LocSage+: each client trains NeighGen and a GraphSAGE on its own subgraph, alone (FedSage, Section 4.2).

NeighGen is trained first, together with a classifier (Equation 5); then, as in the authors' code, a new GraphSAGE is trained
on the subgraph that it mends.  Tested like Local: on the global graph's test nodes, averaged over clients.

Assumes: nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from feddep.frameworks import fedsage_plus
from feddep.neighbour_generation import federated
from feddep.neighbour_generation.mended import MendedFeatureTable, MendedSubgraph, MendedSubgraphEvaluator
from feddep.problem import Outcome, Problem
from feddep.solo import SoloTrainer
from feddep.splits import Split
from feddep.steps import Step, make_all
from feddep.training import Learner

TITLE = "LocSage+"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters(fedsage_plus.Parameters):
    """Those of FedSage+; ``federated_epochs`` must be 0, and ``cross_weight`` is not used.

    Attributes:
        local_epochs: epochs in which NeighGen is trained.  Code: 20; here as many as FedSage+ has of both kinds.
    """

    local_epochs: int = 40
    federated_epochs: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: as for FedSage+, and where ``federated_epochs`` is not 0.
        """
        super().__post_init__()
        if self.federated_epochs:
            raise ValueError("federated_epochs must be 0 where nothing is federated")


class MendedTrainer(SoloTrainer):
    """One model on one mended subgraph."""

    def __init__(self, problem: Problem, mended: MendedSubgraph, split: Split, name: str) -> None:
        """Set up the training; the arguments are those of :class:`feddep.solo.SoloTrainer`."""
        super().__init__(problem, mended.graph, split, name)
        setting, seed, device = problem.setting, problem.seed, problem.device
        table = MendedFeatureTable(mended, setting.fanout, device)
        self._learner = Learner(mended.graph, split.train, setting, seed, name, device, table)
        self._evaluator = MendedSubgraphEvaluator(mended, device)


def steps(parameters: Parameters) -> Sequence[Step]:
    """NeighGen is trained before the classifier."""
    return (Step("generator", federated.generate, federated.USES),)


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """Train one model a client on its mended subgraph; nothing crosses any border."""
    generated = make_all(problem, parameters, steps(parameters))["generator"]
    subgraphs = problem.subgraphs()
    trainers = [
        MendedTrainer(problem, MendedSubgraph.of_client(i, graph, generated, problem.device), split, f"client{i}")
        for i, (graph, split) in enumerate(subgraphs)
    ]
    for _ in problem.rounds():
        for trainer in trainers:
            trainer.round()
    facts = [{"client": i, "nodes": graph.num_nodes, "train": len(split.train)} for i, (graph, split) in enumerate(subgraphs)]
    return Outcome([trainer.history for trainer in trainers], generated.ledger, facts)
