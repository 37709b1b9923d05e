"""Party A: it holds the graph and the features, and sends embeddings of nodes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from feddep.federation.boundary import Boundary, Payload
from feddep.graph.blocks import BlockSampler
from feddep.graph.graph import Graph
from feddep.methods.vesper.networks import Perceptron, feature_rows
from feddep.methods.vesper.perturbed import (
    ROWS,
    NoisedSums,
    PerturbedMessagePassing,
    stacked,
)
from feddep.training.learner import new_optimizer
from feddep.training.task import Task
from feddep.utils import seeding
from feddep.utils.errors import ConfigError

GRAPH_PARTY = 0
"""The number of party A on the communication log: what it sends goes up, what it gets comes down.
"""


class RootBatches:
    """Batches of training nodes, from a stream that both parties know: each has one of these, and
    no names need be sent.
    """

    def __init__(self, nodes: np.ndarray, size: int, seed: int, name: str) -> None:
        """Start the stream ``name`` of the run ``seed``, for batches of B = ``size`` of the N_T
        training ``nodes``.

        Raises:
            ConfigError: if B is above N_T.
        """
        if size > len(nodes):
            raise ConfigError(
                f"setting.batch_size is {size}; it must be at most the number of training "
                f"nodes, {len(nodes)}"
            )
        self.in_epoch = -(-len(nodes) // size)
        """Number of batches ⌈N_T/B⌉ of an epoch."""
        self._nodes, self._size = nodes, size
        self._rng = seeding.generator(seed, name)

    def draw(self) -> np.ndarray:
        """The next batch: B nodes, uniformly without replacement, whatever the batches before are;
        shape (B,).
        """
        return self._rng.choice(self._nodes, self._size, replace=False, shuffle=False)


@dataclass(frozen=True)
class Clipping:
    """A's gradient of a step is scaled down to L2 norm ``norm`` over all weights; each number then
    gets Gaussian ``noise``.
    """

    norm: float
    noise: float


class GraphParty:
    """Party A.  What its methods return has crossed the boundary; what they are given crosses it on
    the way in.
    """

    _sent: Tensor

    def __init__(
        self,
        task: Task,
        sampler: BlockSampler,
        encoder: Perceptron,
        extractor: PerturbedMessagePassing | None,
        trained: Sequence[nn.Module],
        batches: RootBatches,
        boundary: Boundary,
        kinds: tuple[str, str],
        clipping: Clipping | None = None,
        degrees: np.ndarray | None = None,
    ) -> None:
        """Set up the party.

        Args:
            task: has the features, the setting's optimiser and number of layers, seed and device.
            sampler: draws message-flow graphs.
            encoder: from features to encodings of width d.
            extractor: message passing; without it, encodings are sent.
            trained: which of the two is trained.
            batches: the batches of roots.
            boundary: the boundary to party B.
            kinds: the kinds of messages with embeddings and with their gradients.
            clipping: of its gradient.
            degrees: for message passing to go by, shape (n,); by default, how many neighbours a
                node hears.
        """
        self._features, self._sampler = task.graph.features, sampler
        self._encoder, self._extractor = encoder, extractor
        self._hops = task.setting.layers
        self._batches, self._boundary = batches, boundary
        self._kind, self._answer = kinds
        self._device, self._clipping, self._degrees = task.device, clipping, degrees
        self._sampling = {
            part: seeding.generator(task.seed, "party a", part, "sampling")
            for part in (self._kind, "evaluation")
        }
        self._torch = {
            name: seeding.torch_generator(
                task.seed, "party a", self._kind, name, device=task.device
            )
            for name in ("noise", "dropout", "evaluation noise", "gradient noise")
        }
        encoder.requires_grad_(encoder in trained)
        self._constant = encoder not in trained and task.setting.dropout == 0
        self._encodings: Tensor | None = None
        together = nn.ModuleList(trained)
        self._weights = list(together.parameters())
        self._optimizer = new_optimizer(together, task.setting) if self._weights else None
        self._released: NoisedSums | None = None

    @torch.no_grad()
    def keep_sums(self, nodes: np.ndarray) -> None:
        """Draw the noised sums of all ``nodes``, in the order of their ids, once.

        All that is sent from then on is computed from them, and no longer from the graph: nothing
        more is told of it.
        """
        assert self._extractor is not None
        blocks = self._sampler.draw(nodes, self._hops, self._sampling["evaluation"])
        degrees = blocks.degrees if self._degrees is None else self._degrees[blocks.nodes]
        encodings, noise = self._encoded(blocks.nodes, None), self._torch["evaluation noise"]
        self._released = self._extractor.noised_sums(encodings, blocks, degrees, noise)

    def represent(self) -> Payload:
        """Compute and send the embeddings of the next batch, shape (B, L, d)."""
        roots = self._batches.draw()
        with torch.set_grad_enabled(bool(self._weights)):
            layers = self._embed(
                roots, self._sampling[self._kind], self._torch["noise"], self._torch["dropout"]
            )
            self._sent = torch.stack(layers, dim=1)
        return self._boundary.send(GRAPH_PARTY, "up", self._kind, {"values": self._sent})

    def update(self, answer: Payload) -> None:
        """Take in the gradient of the embeddings sent last, and make a step."""
        assert self._optimizer is not None
        gradient = self._boundary.send(GRAPH_PARTY, "down", self._answer, answer)
        self._optimizer.zero_grad()
        self._sent.backward(gradient["values"])
        if self._clipping is not None:
            torch.nn.utils.clip_grad_norm_(self._weights, self._clipping.norm)
            for weight in self._weights:
                if weight.grad is not None:
                    noise = torch.randn(
                        weight.shape, generator=self._torch["gradient noise"], device=weight.device
                    )
                    weight.grad.add_(noise, alpha=self._clipping.noise)
        self._optimizer.step()

    @torch.no_grad()
    def release(self, groups: Mapping[str, np.ndarray]) -> Iterator[Payload]:
        """Compute the embeddings of disjoint groups of nodes in one message-flow graph; send a
        message for each, by its kind.

        Noise is drawn as in training, once for a node and layer, so that all messages together are
        one release of each layer.
        """
        layers = self._embed(
            np.concatenate(list(groups.values())),
            self._sampling["evaluation"],
            self._torch["evaluation noise"],
        )
        parts = torch.stack(layers, dim=1).split([len(nodes) for nodes in groups.values()])
        for kind, rows in zip(groups, parts, strict=True):
            yield self._boundary.send(GRAPH_PARTY, "up", kind, {"values": rows})

    def _embed(
        self,
        roots: np.ndarray,
        rng: np.random.Generator,
        noise: torch.Generator,
        dropout: torch.Generator | None = None,
    ) -> list[Tensor]:
        """The rows that are sent of the roots, a tensor of shape (B, d) for each layer."""
        if self._extractor is None:
            return [stacked(self._encoded(roots, dropout), len(roots))]
        if self._released is not None:
            return self._extractor.from_sums(
                self._released, torch.from_numpy(roots).to(self._device)
            )
        blocks = self._sampler.draw(roots, self._hops, rng)
        degrees = blocks.degrees if self._degrees is None else self._degrees[blocks.nodes]
        return self._extractor(self._encoded(blocks.nodes, dropout), blocks, degrees, noise)

    def _encoded(self, nodes: np.ndarray, dropout: torch.Generator | None) -> Iterator[Tensor]:
        """Encodings of some nodes, in parts; those of all nodes are computed once if they stay the
        same.
        """
        if not self._constant:
            return self._computed(nodes, dropout)
        if self._encodings is None:
            with torch.no_grad():
                count = self._features.shape[0]
                self._encodings = stacked(self._computed(np.arange(count), None), count)
        return iter([self._encodings[torch.from_numpy(nodes).to(self._device)]])

    def _computed(self, nodes: np.ndarray, dropout: torch.Generator | None) -> Iterator[Tensor]:
        for part in (
            [nodes]
            if torch.is_grad_enabled()
            else np.array_split(nodes, math.ceil(len(nodes) / ROWS))
        ):
            yield self._encoder(feature_rows(self._features, part, self._device), dropout)


def noised_degrees(graph: Graph, degree: int, deviation: float, seed: int) -> np.ndarray:
    """The degrees of all nodes, those above D taken as D, with Gaussian noise of standard deviation
    ``deviation``; shape (n,).

    They are the graph's own, not those after bounding: of these an edge changes two by at most 1,
    of those one may change by 2.
    """
    noise = seeding.generator(seed, "party a", "degrees").normal(0, deviation, graph.num_nodes)
    return np.minimum(graph.degrees, degree) + noise
