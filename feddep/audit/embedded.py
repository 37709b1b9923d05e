"""What prototypes tell about pairs of nodes, to an attacker who has the encoder as well.

Prototypes are mean embeddings.  Without the encoder that made them their coordinates mean nothing, and in FedDEP the encoder
stays at home.  It is given to the attacker nevertheless, for two reasons: it is no secret that anybody promises to keep, and
what is not found with it will not be found without.  The attacker embeds each pair of nodes as if they were joined to each
other and to nobody else, and each node alone, and looks how near the prototypes are to either.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep.audit.pairs import Pairs
from feddep.audit.tap import Message
from feddep.audit.updates import cosines
from feddep.graph import Graph
from feddep.nn.embedding import EmbeddingGNN
from feddep.pretraining import Pretraining, embeddings_of, new_gnn, setting_of, without_edges
from feddep.problem import Problem
from feddep.progress import track
from feddep.steps import Made, by_client
from feddep.training import Learner, new_optimizer


def pretrain(problem: Problem, how: Pretraining) -> tuple[list[EmbeddingGNN], Made]:
    """Every client's encoder, and what :func:`feddep.pretraining.embed` makes with it: the same numbers, for its own encoders."""
    encoders, embeddings = [], []
    for i, (graph, split) in enumerate(track(problem.subgraphs(), f"{problem.name}: encoders")):
        seen = graph if how.depth else without_edges(graph)
        setting = setting_of(how, problem.setting)
        gnn = new_gnn(seen, how, setting, problem.seed, f"client{i}", problem.device)
        optimizer = new_optimizer(gnn, setting)
        learner = Learner(seen, split.train, setting, problem.seed, f"client{i}/pretraining", problem.device)
        for _ in range(how.epochs):
            learner.epoch(gnn, optimizer)
        encoders.append(gnn)
        embeddings.append(embeddings_of(gnn, seen, problem.device))
    return encoders, Made(by_client(embeddings=embeddings))


@torch.no_grad()
def as_pairs(encoder: EmbeddingGNN, graph: Graph, nodes: np.ndarray, joined: bool) -> np.ndarray:
    """Embeddings of pairs of nodes that have no other neighbours, shape (N, 2, d_z).

    Args:
        encoder: the encoder.
        graph: features are used, and nothing else.
        nodes: the pairs, shape (N, 2).
        joined: whether the two nodes of a pair are each other's neighbours; else they have none.
    """
    pairs: Any = nodes
    first, *others = [
        (*convolution.weight.detach().cpu().split(convolution.inputs), convolution.bias.detach().cpu())
        for convolution in encoder.body.convolutions
    ]
    own, neighbours, bias = first
    of_self = torch.from_numpy(graph.features @ own.numpy())[pairs]
    of_other = torch.from_numpy(graph.features @ neighbours.numpy())[pairs].flip(1)
    hidden: Tensor = of_self + bias + (of_other if joined else 0)
    for own, neighbours, bias in others:
        hidden = hidden.relu()
        hidden = hidden @ own + bias + (hidden.flip(1) @ neighbours if joined else 0)
    return hidden.tanh().numpy()


class PrototypeReading:
    """Listens to one client's prototypes."""

    def __init__(self, client: int, graph: Graph, encoder: EmbeddingGNN) -> None:
        """Prepare to listen.

        Args:
            client: the client's number.
            graph: its subgraph, of which the edges are not looked at.
            encoder: the client's encoder.
        """
        self._client, self._graph, self._encoder = client, graph, encoder
        self._prototypes: np.ndarray | None = None

    def hear(self, message: Message) -> None:
        """Take note of the client's prototypes."""
        if message.client == self._client and message.direction == "up" and message.kind == "prototypes":
            self._prototypes = message.payload["embeddings"].cpu().numpy().copy()

    def facts(self, pairs: Pairs) -> np.ndarray:
        """What is known of pairs, shape (N, 5).

        How far the nearest prototypes are from the two nodes alone, from the two joined, and by how much nearer they come;
        whether the joined nodes have the same nearest prototype, and how much alike theirs are.
        """
        assert self._prototypes is not None, "prototypes are sent before anything else"
        (alone, _), (together, chosen) = (self._nearest(pairs.nodes, joined) for joined in (False, True))
        found = self._prototypes[chosen]
        alike = [chosen[:, 0] == chosen[:, 1], cosines(found[:, 0], found[:, 1])]
        return np.column_stack([alone.sum(axis=1), together.sum(axis=1), (alone - together).sum(axis=1), *alike])

    def _nearest(self, nodes: np.ndarray, joined: bool) -> tuple[np.ndarray, np.ndarray]:
        z = as_pairs(self._encoder, self._graph, nodes, joined)
        assert self._prototypes is not None
        squares = (z**2).sum(axis=2)[:, :, None] - 2 * z @ self._prototypes.T + (self._prototypes**2).sum(axis=1)
        return np.sqrt(np.maximum(squares.min(axis=2), 0)), squares.argmin(axis=2)
