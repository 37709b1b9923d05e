"""Halo oracle: FedAvg in which no client lacks a neighbour.

Each client trains and validates on its subgraph extended by its halo: other clients' nodes that are at most some hops away,
with their true features and all edges of the global graph among them.  With as many hops as the classifier has layers, the
ego-graph of every training and validation node is what it is on the global graph.  So this is what knowing all missing
neighbours is worth.  A generator of them, such as NeighGen, that does better does so by something else, such as its noise.

It is an oracle and no protocol.  The experimenter cuts the extended graphs from the global graph; real clients neither know
their cross-client edges nor may read each other's features.  What handing over a halo would cost is therefore not in the
communication, which counts the messages of FedAvg and nothing else: those are all that cross a boundary during training.
"""

from typing import Any

from feddep.graph.halo import with_halo
from feddep.methods.basic import fedavg
from feddep.methods.oracles import HaloParameters
from feddep.training.task import Part, RunResult, Task


def run(task: Task, parameters: HaloParameters, steps: Any = None) -> RunResult:
    """FedAvg on the extended subgraphs: same weights, same streams, and without cross-client edges the same numbers."""
    hops = task.setting.layers if parameters.hops is None else parameters.hops
    return fedavg.train_on(task, extended(task, hops))


def extended(task: Task, hops: int) -> list[Part]:
    """Each client's subgraph with its halo, and its share of the split: a halo's nodes are in none of the three sets."""
    parts, partition = task.subgraphs(), task.partition
    assert partition is not None  # without one there are no parts
    return [(with_halo(task.graph, partition.nodes(i), hops), split) for i, (_, split) in enumerate(parts)]
