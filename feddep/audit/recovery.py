"""Rows that gradients give away: features of real nodes in FedSage+, embeddings of real nodes in FedDEP w/o Proto.

Both follow from the messages alone, without any training (docstrings of :mod:`feddep.neighbour_generation.federated` and
:mod:`feddep.frameworks.feddep_wo_proto`):  a gradient of a distance to the nearest real row is a multiple of the difference.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from feddep.audit.tap import Message
from feddep.frameworks import feddep_wo_proto
from feddep.neighbour_generation import federated


class FeatureRecovery:
    """Listens to what client j answers in FedSage+, and solves it for features of its nodes.

    Where one generated neighbour uses a slot, the gradients of the slot's bias b and weights W are δ and δ hᵀ, so that
    h = Wᵀ-gradient δ / ‖δ‖², x̃ = tanh(W h + b), and δ = 2 c (x̃ − x_u)(1 − x̃²) gives x_u.  That one neighbour alone uses it shows
    by the gradient's rank, which is 1.
    """

    def __init__(self, answers: int, clients: int, real: np.ndarray, scale: float) -> None:
        """Prepare to listen.

        Args:
            answers: number j of the client whose answers are listened to.
            clients: number of clients M.
            real: features of its nodes, shape (n, F): to judge what was recovered, not to recover.
            scale: c n of the loss, where n is the number of nodes that it is a mean over.
        """
        self._client, self._scale = answers, scale
        self._answer_to = {federated.request_of(i): federated.gradients_for(i) for i in range(clients)}
        self._real = real
        self._requests: dict[str, dict[str, Tensor]] = {}
        self.solved = 0
        """Number of slots that one neighbour alone used."""
        self.found: set[int] = set()
        """Nodes whose features were recovered: no entry is off by more than a thousandth of the largest."""

    def hear(self, message: Message) -> None:
        """Take note of a request, and solve the answer to it."""
        if message.client != self._client:
            return
        if message.direction == "down" and message.kind in self._answer_to:
            request = {name: tensor.detach().clone() for name, tensor in message.payload.items()}
            self._requests[self._answer_to[message.kind]] = request
        if message.direction == "up" and message.kind in self._requests:
            self._solve(self._requests[message.kind], message.payload)

    def _solve(self, request: Mapping[str, Tensor], answer: Mapping[str, Tensor]) -> None:
        c = self._scale / len(request["embeddings"])
        slot = 0
        while (name := f"heads.{slot}.bias") in answer:
            delta, outer = answer[name].double(), answer[f"heads.{slot}.weight"].double()
            slot += 1
            square = float(delta.square().sum())
            if square == 0:
                continue
            h = outer.T @ delta / square
            if float((outer - torch.outer(delta, h)).norm()) > 1e-4 * float(outer.norm()):
                continue  # several used it
            self.solved += 1
            generated = torch.tanh(request[f"heads.{slot - 1}.weight"].double() @ h + request[f"heads.{slot - 1}.bias"].double())
            features = generated - delta / (2 * c * (1 - generated.square()))
            self._judge(features.cpu().numpy())

    def _judge(self, features: np.ndarray) -> None:
        errors = np.abs(self._real - features).max(axis=1)
        nearest = int(errors.argmin())
        if errors[nearest] <= 1e-3 * np.abs(self._real).max():
            self.found.add(nearest)


class EmbeddingRecovery:
    """Listens to what client j answers in FedDEP w/o Proto: z_u = z̃ − gradient / 2."""

    def __init__(self, answers: int, clients: int, real: Tensor) -> None:
        """Prepare to listen.

        Args:
            answers: number j of the client whose answers are listened to.
            clients: number of clients M.
            real: embeddings of its nodes, shape (n, d_z): to say which node each recovered row is of, and to judge it.
        """
        self._client, self._real = answers, real.cpu()
        self._answer_to = {feddep_wo_proto.generated(i): feddep_wo_proto.gradients(i) for i in range(clients)}
        self._questions: dict[str, Tensor] = {}
        self.found: set[int] = set()

    def rows(self, message: Message) -> tuple[np.ndarray, np.ndarray] | None:
        """The nodes of client j that an answer gives away, each once, and their embeddings as recovered."""
        if message.client != self._client:
            return None
        if message.direction == "down" and message.kind in self._answer_to:
            self._questions[self._answer_to[message.kind]] = message.payload["embeddings"].clone()
        if message.direction != "up" or message.kind not in self._questions:
            return None
        question = self._questions[message.kind]
        used = question.any(dim=2)
        recovered = (question - message.payload["gradients"] / 2)[used].cpu()
        if not len(recovered):
            return None
        distances = torch.cdist(recovered, self._real)
        error, nodes = distances.min(dim=1)
        exact = error <= 1e-3 * self._real.norm(dim=1).max()
        chosen, first = np.unique(nodes[exact].numpy(), return_index=True)
        self.found |= set(chosen.tolist())
        return chosen, recovered[exact].numpy()[first]
