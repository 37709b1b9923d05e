"""What embeddings of single nodes tell about pairs of them.

The embedding of a node holds a mean over its neighbours.  Those of two joined nodes are alike; and where the attacker knows the
weights that made them, it can subtract what the node's own features make, and compare the rest with what the other node's
features would add as a neighbour.
"""

from collections.abc import Callable

import numpy as np

from feddep.audit.pairs import Pairs
from feddep.audit.tap import Message
from feddep.audit.updates import Convolution, convolutions, cosines
from feddep.graph import Graph

Rows = Callable[[Message], tuple[np.ndarray, np.ndarray] | None]
"""From a message the nodes that it tells of and their embeddings, shape (b,) and (b, d); None where it tells of none.

Which row belongs to which node is given to the attacker, who could match rows by the features that they hold.
"""


class RowReading:
    """Listens to embeddings of one client's nodes."""

    def __init__(self, client: int, graph: Graph, pairs: Pairs, rows: Rows, weights: str | None = None) -> None:
        """Prepare to listen.

        Args:
            client: the client's number.
            graph: its subgraph, of which the edges are not looked at.
            pairs: the pairs that will be asked about.
            rows: reads messages.
            weights: kind of the messages that tell the weights which embeddings are made with; none where nobody else knows them.
        """
        self._client, self._graph, self._pairs = client, graph, pairs
        self._rows, self._weights = rows, weights
        self._layer: Convolution | None = None
        self._sum = np.zeros((graph.num_nodes, 0))
        self._times = np.zeros(graph.num_nodes)
        self._facts = np.zeros((len(pairs.nodes), 3))
        self._known = np.zeros((len(pairs.nodes), 1))

    def hear(self, message: Message) -> None:
        """Take note of weights, and of embeddings of the client's nodes."""
        if message.client == self._client and message.kind == self._weights and message.direction == "down":
            self._layer = convolutions(message.payload)[0]
        found = self._rows(message)
        if found is None or not len(found[0]):
            return
        nodes, embeddings = found
        if not self._sum.shape[1]:
            self._sum = np.zeros((self._graph.num_nodes, embeddings.shape[1]))
        np.add.at(self._sum, nodes, embeddings)
        np.add.at(self._times, nodes, 1)
        place = np.full(self._graph.num_nodes, -1)
        place[nodes] = np.arange(len(nodes))
        ends = place[self._pairs.nodes]
        both = (ends >= 0).all(axis=1)
        u, v = ends[both].T
        self._facts[both] += np.column_stack([*_alike(embeddings[u], embeddings[v]), self._explained(nodes, embeddings, u, v)])
        self._known[both] += 1

    def _explained(self, nodes: np.ndarray, embeddings: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """How well one node explains what is left of the other's embedding, in both directions."""
        if self._layer is None or self._layer.bias.shape[0] != embeddings.shape[1]:
            return np.zeros(len(u))
        x = self._graph.features[nodes]
        own = np.maximum(x @ self._layer.own + self._layer.bias, 0)
        share = (embeddings * own).sum(axis=1) / np.maximum((own * own).sum(axis=1), 1e-12)
        left, brought = embeddings - share[:, None] * own, x @ self._layer.neighbours
        return cosines(left[u], brought[v]) + cosines(left[v], brought[u])

    @property
    def coverage(self) -> float:
        """Share of the pairs of both of whose nodes an embedding was heard."""
        return float((self._times[self._pairs.nodes] > 0).all(axis=1).mean())

    def facts(self, pairs: Pairs) -> np.ndarray:
        """What is known of the pairs, shape (N, 5): in the mean over messages that tell of both nodes, and of mean embeddings."""
        assert pairs is self._pairs, "facts are gathered for the pairs that were announced"
        with np.errstate(invalid="ignore", divide="ignore"):
            together = self._facts / self._known
            means = self._sum / self._times[:, None]
        u, v = pairs.nodes.T
        if not means.shape[1]:
            return np.full((len(u), 5), np.nan)
        apart = np.column_stack(_alike(means[u], means[v]))
        apart[(self._times[pairs.nodes] == 0).any(axis=1)] = np.nan
        return np.column_stack([together, apart])


def _alike(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return cosines(a, b), -np.linalg.norm(a - b, axis=1)
