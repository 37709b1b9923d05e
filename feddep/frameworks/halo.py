"""Halo oracle: FedAvg in which no client lacks a neighbour.

Each client trains and validates on its subgraph extended by its halo: other clients' nodes that are at most some hops away,
with their true features and all edges of the global graph among them.  With as many hops as the classifier has layers, the
ego-graph of every training and validation node is what it is on the global graph.  So this is what knowing all missing
neighbours is worth.  A generator of them, such as NeighGen, that does better does so by something else, such as its noise.

It is an oracle and no protocol.  The experimenter cuts the extended graphs from the global graph; real clients neither know
their cross-client edges nor may read each other's features.  What handing over a halo would cost is therefore not in the
ledger, which counts the messages of FedAvg and nothing else: those are all that cross a border during training.

Assumes: oracle.
"""

import dataclasses
from dataclasses import dataclass

from feddep.frameworks import fedavg
from feddep.halo import with_halo
from feddep.problem import Outcome, Part, Problem

TITLE = "Halo oracle"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters:
    """How much of the global graph a client sees.  No paper has this oracle; the choices are ours.

    Attributes:
        hops: how far from its own nodes; 1 for direct neighbours only, 0 for none, which is FedAvg; null: as many as the
            classifier has layers, so that every ego-graph is complete.
    """

    hops: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: naming the parameter and what it must be.
        """
        if self.hops is not None and self.hops < 0:
            raise ValueError("hops must be at least 0")


@dataclass(frozen=True)
class Extended(Problem):
    """A run whose clients hold their halos besides their own nodes.

    Attributes:
        hops: how far a halo reaches.
    """

    hops: int = 0

    def subgraphs(self) -> list[Part]:
        """Each client's extended subgraph and its share of the split: a halo's nodes are in none of the three sets.

        Raises:
            PartitionError: as for any run.
        """
        parts = super().subgraphs()
        assert self.partition is not None  # without one there are no parts
        owned = map(self.partition.nodes, range(self.partition.num_clients))
        return [(with_halo(self.graph, nodes, self.hops), split) for nodes, (_, split) in zip(owned, parts, strict=True)]


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """FedAvg on the extended subgraphs: same weights, same streams, and without cross-client edges the same numbers."""
    hops = problem.setting.layers if parameters.hops is None else parameters.hops
    given = {field.name: getattr(problem, field.name) for field in dataclasses.fields(problem)}
    return fedavg.run(Extended(**given, hops=hops), fedavg.Parameters())
