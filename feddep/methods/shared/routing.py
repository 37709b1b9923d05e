"""Who needs whose embeddings, and the way they take: up from their owners, down to the clients that are joined to them."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from feddep.federation.boundary import Boundary, Direction, Schema
from feddep.methods.shared.cross_edges import CrossEdges
from feddep.methods.shared.expansion import ExpandedSubgraph
from feddep.nn.sage import GraphSAGE


class Router:
    """Passes embeddings on.  It holds no more than which published row goes to whom.

    The clients' rows are thought of as one table: those of client 0, then those of client 1 …
    """

    def __init__(self, published: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
        """Match names; any names will do as long as each node has one of its own.

        ``published`` are the names of the nodes of each client's rows, in order, ``wanted`` those that each client asks for.

        Raises:
            ValueError: if two nodes have the same name, or somebody asks for a node that nobody publishes.
        """
        names = np.concatenate(published)
        order = np.argsort(names)
        ordered = names[order]
        if (ordered[1:] == ordered[:-1]).any():
            raise ValueError("two published nodes have the same name")
        self._rows = []
        for asked in wanted:
            place = np.searchsorted(ordered, asked)
            if len(asked) and (place.max() >= len(ordered) or (ordered[place] != asked).any()):
                raise ValueError("a node is asked for that nobody publishes")
            self._rows.append(order[place])

    def deliver(self, embeddings: Sequence[Tensor]) -> list[Tensor]:
        """The rows that each client asked for, from the rows that each client published."""
        table = torch.cat(list(embeddings))
        return [table[torch.from_numpy(rows).to(table.device)] for rows in self._rows]


def upward(client: int, level: int) -> str:
    """The kind of message that carries a client's embeddings to whoever passes them on."""
    return f"embeddings of client {client} for convolution {level}"


def downward(client: int, level: int) -> str:
    """The kind of message that carries its neighbours' embeddings to a client."""
    return f"embeddings for client {client} and convolution {level}"


def embedding_kinds(edges: Sequence[CrossEdges], widths: dict[int, int]) -> dict[str, Schema]:
    """The messages of an exchange: the width of what is exchanged, by the convolution that it is for."""
    kinds: dict[str, Schema] = {}
    for i, own in enumerate(edges):
        for level, width in widths.items():
            kinds[upward(i, level)] = {"embeddings": (len(own.endpoints), width)}
            kinds[downward(i, level)] = {"embeddings": (len(own.outside), width)}
    return kinds


def exchange(
    boundary: Boundary, router: Router, model: GraphSAGE, subgraphs: Sequence[ExpandedSubgraph], levels: Sequence[int]
) -> None:
    """Compute what stands in for nodes elsewhere with the weights of ``model``, and carry it to all who need it.

    Convolution by convolution, as the inputs of one hold what the one before made of neighbours elsewhere.  A client without
    edges to others sends and gets nothing.
    """
    for level in sorted(levels):
        published = [subgraph.publish(model, level) for subgraph in subgraphs]
        sent = [_carry(boundary, i, "up", upward(i, level), rows) for i, rows in enumerate(published)]
        for i, rows in enumerate(router.deliver(sent)):
            subgraphs[i].receive(level, _carry(boundary, i, "down", downward(i, level), rows))


def _carry(boundary: Boundary, client: int, direction: Direction, kind: str, rows: Tensor) -> Tensor:
    return boundary.cross(client, direction, kind, {"embeddings": rows})["embeddings"] if len(rows) else rows
