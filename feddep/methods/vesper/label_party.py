"""Party B: it holds the labels, and decodes what it is sent."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from feddep.federation.boundary import Payload
from feddep.methods.vesper.graph_party import RootBatches
from feddep.methods.vesper.perturbed import ROWS
from feddep.training.config import TrainingConfig
from feddep.training.evaluation import ClassCounts, CorrectCount
from feddep.training.evaluator import score
from feddep.training.learner import new_optimizer
from feddep.utils import seeding


class LabelParty:
    """Party B.  It sees embeddings, after they have crossed the boundary, and node ids; what it
    returns has yet to cross it.
    """

    _kept: Tensor

    def __init__(
        self,
        labels: np.ndarray,
        decoder: Any,
        setting: TrainingConfig,
        batches: RootBatches,
        seed: int,
        stream: str,
        device: str = "cpu",
    ) -> None:
        """Set up the party, which has the labels of all nodes, shape (n,), and draws from the
        stream of that name.

        The decoder goes from embeddings, shape (B, L, d), to logits.
        """
        self._labels = torch.from_numpy(labels.copy()).to(device)
        self._decoder = decoder
        self._metric = setting.metric
        self._optimizer = new_optimizer(decoder, setting)
        self._batches = batches
        self._dropout = seeding.torch_generator(seed, "party b", stream, "dropout", device=device)
        self._losses: list[tuple[int, Tensor]] = []

    def keep(self, received: Payload) -> None:
        """Keep the embeddings of all nodes, shape (n, L, d), in the order of their ids."""
        self._kept = received["values"]

    def learn(self, received: Payload | None = None) -> Payload:
        """Make a step on the next batch, and return the gradient of the mean loss by its
        embeddings, shape (B, L, d).

        Without a message, the step is on embeddings that were kept.
        """
        roots = torch.from_numpy(self._batches.draw()).to(self._labels.device)
        leaf = self._rows(roots, received).detach().requires_grad_()
        self._optimizer.zero_grad()
        loss = cross_entropy(self._decoder(leaf, self._dropout), self._labels[roots])
        loss.backward()
        self._optimizer.step()
        self._losses.append((len(roots), loss.detach()))
        assert leaf.grad is not None
        return {"values": leaf.grad}

    @torch.no_grad()
    def score(
        self, nodes: np.ndarray, received: Payload | None = None
    ) -> tuple[CorrectCount, ClassCounts]:
        """How well ``nodes`` are classified, as the setting has it, and by class, from their
        embeddings or from those that were kept.
        """
        chosen = torch.from_numpy(nodes).to(self._labels.device)
        logits = torch.cat(
            [self._decoder(rows) for rows in self._rows(chosen, received).split(ROWS)]
        )
        return score(logits, self._labels[chosen], self._metric)

    def mean_loss(self) -> float:
        """Mean loss a node, in nats, of the steps since this was asked last."""
        sizes, losses = zip(*self._losses, strict=True)
        self._losses = []
        return float(
            torch.stack(losses).cpu().numpy().astype(np.float64) @ np.array(sizes) / sum(sizes)
        )

    def _rows(self, nodes: Tensor, received: Payload | None) -> Tensor:
        """The embeddings of some nodes that were received, or those that were kept."""
        return self._kept[nodes] if received is None else received["values"]
