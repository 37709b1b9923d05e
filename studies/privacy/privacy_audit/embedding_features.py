"""Embeddings and prototypes as evidence on edges.

An embedding of a node holds a mean over its neighbours, so those of joined nodes are similar; an
adversary who knows the weights can also subtract what the node's own features contribute, and
compare the rest with what the other node would add as a neighbour.

A prototype is a mean of embeddings.  The adversary is given the client's encoder, which in FedDEP
stays at home.  It embeds each pair of nodes as if joined to each other only, and as if isolated,
and measures how near the prototypes are to either.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep.graph.graph import Graph
from feddep.methods.feddep import PretrainingParameters
from feddep.methods.feddep.pretraining import EmbeddingGNN, embeddings_of, prepared, train_gnn
from feddep.methods.method import StepResult, by_client
from feddep.training.task import Task
from studies.privacy.privacy_audit.pairs import Pairs
from studies.privacy.privacy_audit.updates import Convolution, convolutions, cosines

Extract = Callable[[str, str, Mapping[str, Tensor]], tuple[np.ndarray, np.ndarray] | None]
"""From a message (direction, kind, payload) the nodes that it tells of, shape (b,), and their
embeddings, shape (b, d), or None.

The adversary is told which row belongs to which node; it could match rows by the features that they
hold.
"""


def sent_embeddings(kinds: Collection[str], nodes: Callable[[], np.ndarray]) -> Extract:
    """Extracts the embeddings in messages of these kinds from a client; ``nodes`` gives the nodes
    of each message in turn.
    """

    def extract(
        direction: str, kind: str, payload: Mapping[str, Tensor]
    ) -> tuple[np.ndarray, np.ndarray] | None:
        return (
            (nodes(), payload["embeddings"].cpu().numpy())
            if kind in kinds and direction == "up"
            else None
        )

    return extract


class EmbeddingFeatures:
    """Features of pairs from embeddings of one client's nodes, which ``extract`` reads off
    messages; its edges are not used.

    ``weights_known``: whether the adversary knows the weights that embeddings are computed with,
    those of the common model.
    """

    def __init__(self, graph: Graph, pairs: Pairs, extract: Extract, weights_known: bool) -> None:
        self._graph = graph
        self._pairs = pairs
        self._extract = extract
        self._weights_known = weights_known
        self._layer: Convolution | None = None
        self._sum = np.zeros((graph.num_nodes, 0))
        self._times = np.zeros(graph.num_nodes)
        self._joint_sum = np.zeros((len(pairs.nodes), 3))
        self._joint_times = np.zeros((len(pairs.nodes), 1))

    def receive(self, direction: str, kind: str, payload: Mapping[str, Tensor]) -> None:
        """Process weights, and embeddings of the client's nodes."""
        if self._weights_known and (direction, kind) == ("down", "model"):
            self._layer = convolutions(payload)[0]
        found = self._extract(direction, kind, payload)
        if found is None or not len(found[0]):
            return
        nodes, embeddings = found
        if not self._sum.shape[1]:
            self._sum = np.zeros((self._graph.num_nodes, embeddings.shape[1]))
        np.add.at(self._sum, nodes, embeddings)
        np.add.at(self._times, nodes, 1)
        row = np.full(self._graph.num_nodes, -1)
        row[nodes] = np.arange(len(nodes))
        ends = row[self._pairs.nodes]
        both = (ends >= 0).all(axis=1)
        u, v = ends[both].T
        similarity = _similarity(embeddings[u], embeddings[v])
        self._joint_sum[both] += np.column_stack(
            [*similarity, self._explained(nodes, embeddings, u, v)]
        )
        self._joint_times[both] += 1

    def _explained(
        self, nodes: np.ndarray, embeddings: np.ndarray, u: np.ndarray, v: np.ndarray
    ) -> np.ndarray:
        """How well one node as a neighbour explains the rest of the other's embedding, summed over
        both directions.
        """
        if self._layer is None or self._layer.bias.shape[0] != embeddings.shape[1]:
            return np.zeros(len(u))
        x = self._graph.features[nodes]
        own = np.maximum(x @ self._layer.own + self._layer.bias, 0)
        share = (embeddings * own).sum(axis=1) / np.maximum((own * own).sum(axis=1), 1e-12)
        rest, added = embeddings - share[:, None] * own, x @ self._layer.neighbours
        return cosines(rest[u], added[v]) + cosines(rest[v], added[u])

    def features(self, pairs: Pairs) -> np.ndarray:
        """Features of the pairs, shape (N, 5): means over messages that tell of both nodes, and
        similarity of mean embeddings.
        """
        assert pairs is self._pairs, "features are gathered for the pairs that were announced"
        u, v = pairs.nodes.T
        with np.errstate(invalid="ignore"):  # 0 / 0 where nothing is known
            joint = self._joint_sum / self._joint_times
            means = self._sum / self._times[:, None]
        of_means = np.column_stack(_similarity(means[u], means[v]))
        of_means[(self._times[pairs.nodes] == 0).any(axis=1)] = np.nan
        return np.column_stack([joint, of_means])


def _similarity(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return cosines(a, b), -np.linalg.norm(a - b, axis=1)


class PrototypeFeatures:
    """Features of pairs from one client's prototypes, given its subgraph, of which the edges are
    not used, and its encoder.
    """

    def __init__(self, graph: Graph, encoder: EmbeddingGNN) -> None:
        self._graph, self._encoder = graph, encoder
        self._prototypes = np.empty((0, 0))

    def receive(self, direction: str, kind: str, payload: Mapping[str, Tensor]) -> None:
        """Keep the client's prototypes."""
        if (direction, kind) == ("up", "prototypes"):
            self._prototypes = payload["embeddings"].cpu().numpy().copy()

    def features(self, pairs: Pairs) -> np.ndarray:
        """Features of pairs, shape (N, 5).

        Distances of the nearest prototypes to the two nodes isolated, to the two joined, and the
        difference; whether the joined nodes have the same nearest prototype, and the cosine of
        their nearest prototypes.
        """
        (isolated, _), (joined, nearest) = (
            self._nearest(pairs.nodes, joined) for joined in (False, True)
        )
        found = self._prototypes[nearest]
        similarity = [nearest[:, 0] == nearest[:, 1], cosines(found[:, 0], found[:, 1])]
        return np.column_stack(
            [isolated.sum(axis=1), joined.sum(axis=1), (isolated - joined).sum(axis=1), *similarity]
        )

    def _nearest(self, nodes: np.ndarray, joined: bool) -> tuple[np.ndarray, np.ndarray]:
        z = embed_pairs(self._encoder, self._graph, nodes, joined)
        squares = (
            (z**2).sum(axis=2)[:, :, None]
            - 2 * z @ self._prototypes.T
            + (self._prototypes**2).sum(axis=1)
        )
        return np.sqrt(np.maximum(squares.min(axis=2), 0)), squares.argmin(axis=2)


def embed_pairs(encoder: EmbeddingGNN, graph: Graph, nodes: np.ndarray, joined: bool) -> np.ndarray:
    """Embeddings, shape (N, 2, d_z), of pairs of nodes, shape (N, 2), as neighbours of each other
    or isolated.

    Of the graph the features are used, and nothing else.
    """
    first, *others = convolutions(encoder.state_dict())
    of_neighbour = (graph.features @ first.neighbours)[nodes][:, ::-1] if joined else 0
    hidden: Any = torch.from_numpy((graph.features @ first.own)[nodes] + first.bias + of_neighbour)
    for layer in others:
        own, neighbours, bias = map(torch.from_numpy, layer)
        hidden = hidden.relu()
        hidden = hidden @ own + bias + (hidden.flip(1) @ neighbours if joined else 0)
    return hidden.tanh().numpy()


def train_encoders(
    task: Task, parameters: PretrainingParameters
) -> tuple[list[EmbeddingGNN], StepResult]:
    """Every client's own encoder, and the step's result, the same as
    :func:`feddep.methods.feddep.pretraining.embed` gives.
    """
    task, clients = prepared(task, task.subgraphs(), parameters)
    encoders = [
        train_gnn(task, client, parameters, f"client{i}") for i, client in enumerate(clients)
    ]
    embeddings = [
        embeddings_of(encoder, graph, task.device)
        for encoder, (graph, _) in zip(encoders, clients, strict=True)
    ]
    return encoders, StepResult(by_client(embeddings=embeddings))
