"""Training generators as a run does, while counting what learning from other clients takes.

The cross-client part of an update is what FedDEP's term β^n of L^n_i and its counterpart in FedSage+ ask for: finding, for each
generated neighbour, the nearest that every other client has, the distances to what was found, and their gradient.  It is
counted wherever it is carried out, at the client itself or at the others.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """What training one client's generator takes.

    Attributes:
        nodes: number of nodes that an update generates neighbours for.
        updates: number of updates.
        sought: number of neighbours of a node that the nearest are looked up for, in the mean over nodes and updates.
        generated: number of them that count, as so many have been generated, likewise.
        operations: floating-point operations of an update's cross-client part, in the mean over updates.
        all_operations: those of the whole training, and of mending the subgraph with its result.
        weights: number |θ| of weights that are sent along, where others generate with the client's own generator.
    """

    nodes: int
    updates: int
    sought: float
    generated: float
    operations: float
    all_operations: int
    weights: int = 0
