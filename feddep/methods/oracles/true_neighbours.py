"""The true neighbours in place of generated ones: what knowing them is worth.

*FedAvg, oracle.*  Each client trains and validates on its subgraph extended by its halo: other
clients' nodes that are at most some hops away, with their true features and all edges of the global
graph among them.  With as many hops as the classifier has layers, the ego-graph of every training
and validation node is what it is on the global graph.

*FedDEP, oracle.*  FedDEP's classifier on subgraphs that are mended with the truth instead of what
DGen generates:

    z̄_v = mean { z_u : u a neighbour of v that another client owns },   0 where v has none

and z_u is what u's own client has computed for it: the embedding that DGen would ideally generate.
With ``encoder`` ``local``, as in the paper, the embeddings of two clients live in unrelated bases;
with ``federated`` all have one basis.  The difference is what the bases cost.

A generator that does better than these does so by something else, such as its noise.  They are no
protocols: the experimenter, who alone knows the cross-client edges, hands the nodes or their
embeddings over, which is not in the communication log.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from feddep.graph.halo import missing_neighbours, with_halo
from feddep.methods.basic import fedavg
from feddep.methods.feddep import FedDEPParameters, classifier
from feddep.methods.method import StepResult
from feddep.methods.oracles import HaloParameters
from feddep.nn.sparse import SparseMatrix
from feddep.training.task import ClientData, RunResult, Task


def run_fedavg(task: Task, parameters: HaloParameters, steps: Any = None) -> RunResult:
    """FedAvg on the extended subgraphs: same weights, same streams, and without cross-client edges
    the same numbers.
    """
    hops = task.setting.layers if parameters.hops is None else parameters.hops
    return fedavg.train_on(task, extended(task, hops))


def extended(task: Task, hops: int) -> list[ClientData]:
    """Each client's subgraph with its halo, and its share of the split: a halo's nodes are in none
    of the three sets.
    """
    return [
        (with_halo(task.graph, task.ownership.nodes(i), hops), split)
        for i, (_, split) in enumerate(task.subgraphs())
    ]


def run_feddep(
    task: Task, parameters: FedDEPParameters, steps: Mapping[str, StepResult]
) -> RunResult:
    """Train FedDEP's classifier on the true embeddings."""
    return classifier.train_classifier(
        task, parameters, mend_truly(task, steps["pretrain"].of_clients("embeddings"))
    )


def mend_truly(task: Task, embeddings: Sequence[Tensor]) -> list[Tensor]:
    """z̄_v of each client's nodes, shape (n_i, d_z), from the embeddings Z_i of each client, shape
    (n_i, d_z).
    """
    partition, device = task.ownership, task.device
    owned = [torch.from_numpy(partition.nodes(i)).to(device) for i in range(partition.num_clients)]
    z = torch.cat(list(embeddings))[torch.argsort(torch.cat(owned))]
    mended = SparseMatrix.from_scipy(missing_neighbours(task.graph, partition), device) @ z
    return [mended[nodes] for nodes in owned]
