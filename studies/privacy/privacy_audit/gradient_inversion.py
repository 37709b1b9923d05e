"""Gradient inversion: features (FedSage+) and embeddings (FedDEP w/o Proto) recovered exactly from
returned gradients.

* FedSage+: where one generated neighbour uses a slot, the gradients of its bias b and weights W are
  δ and δ hᵀ.  So h = (∇W)ᵀ δ / ‖δ‖² and x̃ = tanh(W h + b).  Then δ = 2 c (x̃ − x_u)(1 − x̃²)
  gives the features x_u of the nearest real node; c is the scale of the loss.
* FedDEP w/o Proto: the gradient of ‖z̃ − z_u‖² is 2 (z̃ − z_u), so z_u = z̃ − gradient / 2.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from feddep.methods.feddep import without_prototypes
from feddep.methods.fedsage import cross_client
from studies.privacy.privacy_audit.pairs import Pairs

TOLERANCE = 1e-3
"""Largest error of a row that counts as recovered, as a share of the largest entry, or length, of
the real rows.
"""


class _Inversion:
    """Keeps the last request to a client, of the kind ``question``, which it answers by a message
    of the kind ``answer``; ``found`` are the client's nodes with a recovered row.
    """

    def __init__(self, question: str, answer: str) -> None:
        self._question, self._answer = question, answer
        self._asked: dict[str, Tensor] = {}
        self.found: set[int] = set()

    def _request(
        self, direction: str, kind: str, payload: Mapping[str, Tensor]
    ) -> dict[str, Tensor] | None:
        """The request that the message answers; None, after keeping it, where it is a request
        itself.
        """
        if direction == "up":
            return self._asked if kind == self._answer else None
        if kind == self._question:
            self._asked = {name: tensor.detach().clone() for name, tensor in payload.items()}
        return None


class FeatureInversion(_Inversion):
    """Inverts the gradients that a client returns to others in FedSage+, for slots that one
    generated neighbour uses.

    ``real`` are features of the client's nodes, shape (n, F), to evaluate what was recovered, not
    to recover; ``scale`` is c n of the loss, where n is the number of nodes that it is a mean over.
    """

    def __init__(self, real: np.ndarray, scale: float) -> None:
        super().__init__(cross_client.REQUEST, cross_client.GRADIENTS)
        self._real, self._scale = real, scale

    def receive(self, direction: str, kind: str, payload: Mapping[str, Tensor]) -> None:
        """Keep a request to the client, and invert the client's answer to it."""
        if (request := self._request(direction, kind, payload)) is not None:
            self._invert(request, payload)

    def features(self, pairs: Pairs) -> np.ndarray:
        """No features of pairs, shape (N, 0): answers do not depend on edges."""
        return np.empty((len(pairs.nodes), 0))

    def _invert(self, request: Mapping[str, Tensor], answer: Mapping[str, Tensor]) -> None:
        c = self._scale / len(request["embeddings"])
        slot = 0
        while (head := f"heads.{slot}") + ".bias" in answer:
            slot += 1
            delta, outer = answer[f"{head}.bias"].double(), answer[f"{head}.weight"].double()
            square = float(delta.square().sum())
            if square == 0:
                continue
            h = outer.T @ delta / square
            if float((outer - torch.outer(delta, h)).norm()) > 1e-4 * float(outer.norm()):
                continue  # several neighbours use the slot
            generated = torch.tanh(
                request[f"{head}.weight"].double() @ h + request[f"{head}.bias"].double()
            )
            features = (generated - delta / (2 * c * (1 - generated.square()))).cpu().numpy()
            errors = np.abs(self._real - features).max(axis=1)
            if errors.min() <= TOLERANCE * np.abs(self._real).max():
                self.found.add(int(errors.argmin()))


class EmbeddingInversion(_Inversion):
    """Inverts the gradients that a client returns to others in FedDEP w/o Proto: z_u = z̃ −
    gradient / 2.

    ``real`` are embeddings of the client's nodes, shape (n, d_z): to identify the node of each
    recovered row, and to evaluate it.
    """

    def __init__(self, real: Tensor) -> None:
        super().__init__(without_prototypes.GENERATED, without_prototypes.GRADIENTS)
        self._real = real.cpu()

    def extract(
        self, direction: str, kind: str, payload: Mapping[str, Tensor]
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The client's nodes whose embeddings an answer gives away, each once, and the embeddings
        as recovered.
        """
        request = self._request(direction, kind, payload)
        if request is None:
            return None
        generated = request["embeddings"]
        recovered = (generated - payload["gradients"] / 2)[generated.any(dim=2)].cpu()
        if not len(recovered):
            return None
        error, nodes = torch.cdist(recovered, self._real).min(dim=1)
        exact = error <= TOLERANCE * self._real.norm(dim=1).max()
        chosen, first = np.unique(nodes[exact].numpy(), return_index=True)
        self.found |= set(chosen.tolist())
        return chosen, recovered[exact].numpy()[first]
