"""FedStruct: clients know walks of L steps on the global graph, and learn a vector for each of its
nodes.

Source: Aliakbari, Östman and Graell i Amat, "Decoupled subgraph federated learning" (2024), with
Hop2Vec.  With

    Ā = (D̂^(−1) (A + I))^L,   D̂ = D + I,

of the global graph, client k predicts O_k = f(X_k, A_k) + Ā_k MLP(S) from its rows of Ā, shape
(n_k, n), and a row of S for each node of the global graph, shape (n, d).  Training is that of
:mod:`feddep.methods.fedstruct.training`.

Clients compute their rows in L − 1 exchanges.  With B = D̂^(−1) (A + I), Ā¹_k = B_k, and

    Ā^(l+1)_k = Σ_u B_k[:, u] Ā^l[u]   over the client's own nodes u and their neighbours elsewhere,

whose rows of Ā^l their owners send.  A row says which nodes of the global graph are within l steps
of u, by their ids.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep.federation.boundary import Boundary, ByClient
from feddep.graph.graph import mean_adjacency_with_self_loops
from feddep.methods.fedstruct import FedStructParameters, training
from feddep.methods.shared.cross_edges import CrossEdges, cross_edges
from feddep.methods.shared.routing import rows_of_endpoints, rows_of_outside
from feddep.training.task import RunResult, Task
from feddep.utils.errors import ConfigError

LARGEST = 20_000
"""Most nodes of a global graph: clients and experimenter together hold its n × n matrix several
times.
"""


class FedStructModel(training.StructureModel):
    """O_k = f(X_k, A_k) + Ā_k MLP(S)."""

    def structure_logits(self, generator: torch.Generator | None) -> Tensor:
        return self.matrix @ self.perceptron(self.structure, generator)


def run(task: Task, parameters: FedStructParameters, steps: Any = None) -> RunResult:
    """FedStruct from top to bottom.

    Raises:
        ConfigError: if the graph is too large for its n × n matrix.
    """
    nodes = task.graph.num_nodes
    if nodes > LARGEST:
        raise ConfigError(
            f"fedstruct takes graphs of at most {LARGEST} nodes, but {task.name} has {nodes} "
            "(key datasets), "
            f"whose n × n matrix takes {4 * nodes**2 / 2**30:.3g} GiB"
        )

    def new_model(matrix: Tensor) -> FedStructModel:
        return FedStructModel(task, matrix, parameters.structure_width)

    edges = cross_edges(task)
    boundary = Boundary(
        {**training.kinds(new_model(torch.empty(0, nodes))), **messages(edges, nodes)},
        task.observers,
    )
    return training.train(task, boundary, powers(task, boundary, edges, parameters.hops), new_model)


def powers(task: Task, boundary: Boundary, edges: Sequence[CrossEdges], hops: int) -> list[Tensor]:
    """Each client's rows of Ā, float32, shape (n_k, n)."""
    walk = mean_adjacency_with_self_loops(task.graph)
    rows = [walk[own.nodes].toarray() for own in edges]
    known = [np.concatenate([own.nodes, own.outside]) for own in edges]
    for _ in range(hops - 1):
        server = np.zeros(walk.shape, dtype=np.float32)
        for i, own in enumerate(edges):
            if len(own.outside):
                sent = boundary.send(
                    i,
                    "up",
                    "walks",
                    {"walks": torch.from_numpy(rows[i][own.endpoints])},
                )
                server[own.nodes[own.endpoints]] = sent["walks"]
        for i, own in enumerate(edges):
            if len(own.outside):
                told = boundary.send(
                    i,
                    "down",
                    "walks",
                    {"walks": torch.from_numpy(server[own.outside])},
                )
                rows[i] = np.concatenate([rows[i], told["walks"].numpy()])
            rows[i] = walk[own.nodes][:, known[i]] @ rows[i]
    return [torch.from_numpy(each) for each in rows]


def messages(edges: Sequence[CrossEdges], nodes: int) -> dict[str, ByClient]:
    """The messages of :func:`powers` on a global graph of so many nodes."""
    return {
        "walks": ByClient(
            up=rows_of_endpoints(edges, "walks", nodes), down=rows_of_outside(edges, "walks", nodes)
        )
    }
