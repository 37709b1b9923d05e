"""Who needs whose embeddings, and the way they take: up from their owners, down to the clients that
are joined to them.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from feddep.federation.boundary import Boundary, ByClient, Direction, Schema
from feddep.methods.shared.cross_edges import CrossEdges
from feddep.methods.shared.expansion import ExpandedSubgraph
from feddep.nn.layered import LayeredClassifier
from feddep.training.task import Task
from feddep.utils.seeding import generator

NAMES = "encrypted names"
"""The kind of message with the names of a client's nodes that have neighbours elsewhere, and of
those neighbours.
"""


DEGREES = "degrees"
"""The kind of message with the degrees of a client's nodes that have neighbours elsewhere, and of
those neighbours.
"""


class Router:
    """Passes embeddings on.  It holds no more than which published row goes to whom.

    The clients' rows are thought of as one table: those of client 0, then those of client 1 …
    """

    def __init__(self, published: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
        """Match the names of the nodes of each client's rows, in order, with those that each client
        asks for.

        Any names will do as long as each node has one of its own.
        """
        names = np.concatenate(published)
        order = np.argsort(names)
        self._rows = [order[np.searchsorted(names, asked, sorter=order)] for asked in wanted]

    def deliver(self, embeddings: Sequence[Tensor]) -> list[Tensor]:
        """The rows that each client asked for, from the rows that each client published."""
        table = torch.cat(list(embeddings))
        return [table[torch.from_numpy(rows).to(table.device)] for rows in self._rows]


def match(task: Task, boundary: Boundary, edges: Sequence[CrossEdges]) -> Router:
    """Let the third party find out whose embeddings go to whom, from names that it cannot read.

    A node's name is a random number, the same at every client: it stands for a deterministic
    encryption under a key that all clients have and the third party has not.
    """
    names = torch.from_numpy(generator(task.seed, "names").random(task.graph.num_nodes))
    received = []
    for i, own in enumerate(edges):
        sent = {"own": names[own.nodes[own.endpoints]], "elsewhere": names[own.outside]}
        received.append(boundary.send(i, "up", NAMES, sent) if len(own.outside) else sent)
    return Router(
        [each["own"].numpy() for each in received], [each["elsewhere"].numpy() for each in received]
    )


def share(
    task: Task,
    boundary: Boundary,
    edges: Sequence[CrossEdges],
    kind: str,
    rows: Sequence[Tensor],
) -> list[Tensor]:
    """Carry a row about each of a client's nodes with neighbours elsewhere to all who have these.

    Args:
        task: the task.
        boundary: that of the clients, to which :func:`share_kinds` is declared.
        edges: the clients' edges to each other.
        kind: of the messages.
        rows: of each client, in the order of ``endpoints``, shape (b_i, width).

    Returns:
        For each client the rows of ``outside``, shape (h_i, width).
    """
    router = match(task, boundary, edges)
    sent = [_carry(boundary, i, "up", kind, kind, own) for i, own in enumerate(rows)]
    told = enumerate(router.deliver(sent))
    return [_carry(boundary, i, "down", kind, kind, received) for i, received in told]


def share_kinds(edges: Sequence[CrossEdges], kind: str, width: int) -> dict[str, ByClient]:
    """The messages of :func:`share`."""
    up, down = rows_of_endpoints(edges, kind, width), rows_of_outside(edges, kind, width)
    return {**name_kinds(edges), kind: ByClient(up, down)}


def share_degrees(task: Task, boundary: Boundary, edges: Sequence[CrossEdges]) -> list[np.ndarray]:
    """The degrees of each client's nodes, and behind them those of the nodes elsewhere that it is
    joined to, which their owners tell; int64, shape (n_i + h_i,).
    """
    own_degrees = [task.graph.degrees[own.nodes] for own in edges]
    rows = [
        torch.from_numpy(degrees[own.endpoints]).float()[:, None]
        for own, degrees in zip(edges, own_degrees, strict=True)
    ]
    told = share(task, boundary, edges, DEGREES, rows)
    return [
        np.concatenate([degrees, received[:, 0].numpy().astype(np.int64)])
        for degrees, received in zip(own_degrees, told, strict=True)
    ]


def expanded_subgraphs(
    task: Task, boundary: Boundary, edges: Sequence[CrossEdges], levels: Sequence[int]
) -> list[ExpandedSubgraph]:
    """Each client's subgraph, with stand-ins in the convolutions ``levels``; for a GCN clients are
    told degrees (:func:`share_degrees`).
    """
    gcn = task.setting.encoder == "gcn"
    degrees = share_degrees(task, boundary, edges) if gcn else [None] * len(edges)
    parts = zip(task.subgraphs(), edges, degrees, strict=True)
    return [ExpandedSubgraph(task, graph, own, levels, known) for (graph, _), own, known in parts]


def name_kinds(edges: Sequence[CrossEdges]) -> dict[str, ByClient]:
    """Schemas of the messages with names."""
    sizes = [{"own": (len(own.endpoints),), "elsewhere": (len(own.outside),)} for own in edges]
    return {NAMES: ByClient(up=sizes)}


def upward(level: int) -> str:
    """The kind of message that carries a client's embeddings to whoever passes them on."""
    return f"embeddings for convolution {level}"


def downward(level: int) -> str:
    """The kind of message that carries its neighbours' embeddings to a client."""
    return f"embeddings and convolution {level}"


def embedding_kinds(edges: Sequence[CrossEdges], widths: dict[int, int]) -> dict[str, ByClient]:
    """The messages of an exchange: the width of what is exchanged, by the convolution that it is
    for.
    """
    kinds: dict[str, ByClient] = {}
    for level, width in widths.items():
        kinds[upward(level)] = ByClient(up=rows_of_endpoints(edges, "embeddings", width))
        kinds[downward(level)] = ByClient(down=rows_of_outside(edges, "embeddings", width))
    return kinds


def rows_of_endpoints(edges: Sequence[CrossEdges], name: str, width: int) -> list[Schema]:
    """Each client's schema of a tensor with a row for each of its nodes joined to others'."""
    return [{name: (len(own.endpoints), width)} for own in edges]


def rows_of_outside(edges: Sequence[CrossEdges], name: str, width: int) -> list[Schema]:
    """Each client's schema of a tensor with a row for each node elsewhere that it is joined to."""
    return [{name: (len(own.outside), width)} for own in edges]


def exchange(
    boundary: Boundary,
    router: Router,
    model: LayeredClassifier,
    subgraphs: Sequence[ExpandedSubgraph],
    levels: Sequence[int],
) -> None:
    """Compute what stands in for nodes elsewhere with the weights of ``model``, and carry it to all
    who need it.

    Convolution by convolution, as the inputs of one hold what the one before made of neighbours
    elsewhere.  A client without edges to others sends and gets nothing.
    """
    for level in sorted(levels):
        sent = [
            _carry(boundary, i, "up", upward(level), "embeddings", subgraph.publish(model, level))
            for i, subgraph in enumerate(subgraphs)
        ]
        for i, rows in enumerate(router.deliver(sent)):
            received = _carry(boundary, i, "down", downward(level), "embeddings", rows)
            subgraphs[i].receive(level, received)


def _carry(
    boundary: Boundary, client: int, direction: Direction, kind: str, name: str, rows: Tensor
) -> Tensor:
    """Send rows, called by ``name`` in their message; without rows there is none."""
    return boundary.send(client, direction, kind, {name: rows})[name] if len(rows) else rows
