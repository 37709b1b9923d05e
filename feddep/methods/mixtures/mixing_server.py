"""A server that sends each client a mean of its own of all clients' weights."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from feddep.federation.boundary import Payload
from feddep.federation.client import Update
from feddep.federation.server import Server, weighted_mean


class MixingServer(Server, ABC):
    """Sends client k Σ_l a_kl w_l / Σ_l a_kl, where w_l are the weights that client l has sent."""

    def __init__(self, *arguments: Any, parameters: Any) -> None:
        """Set up a server; the first arguments are those of
        :class:`feddep.federation.server.Server`.
        """
        super().__init__(*arguments)
        self.parameters = parameters
        self._personal: dict[int, Payload] = {}

    @abstractmethod
    def mixture(self, updates: Sequence[Update]) -> Tensor:
        """Weights a_kl of clients l in the mean of client k, shape (K, K)."""

    def aggregate(self, updates: Sequence[Update]) -> None:
        """Mix the weights that were sent anew, for those who sent them."""
        sent = [update.weights for update in updates]
        for update, row in zip(updates, self.mixture(updates).tolist(), strict=True):
            self._personal[update.client] = weighted_mean(sent, row)

    def weights_for(self, client: int) -> Payload:
        """The client's own mean of the last round that it was in; before that, the initial
        weights.
        """
        return self._personal.get(client, self.weights)


def cosines(vectors: Tensor) -> Tensor:
    """Cosine of each two of K vectors, shape (K, K), from shape (K, d)."""
    unit = normalize(vectors, dim=1)
    return unit @ unit.T


class SimilarityServer(MixingServer):
    """Mixes clients by a softmax of τ times the cosines of what they send under a name."""

    def __init__(self, *arguments: Any, parameters: Any, name: str) -> None:
        super().__init__(*arguments, parameters=parameters)
        self.name = name

    def mixture(self, updates: Sequence[Update]) -> Tensor:
        """a_kl = softmax over l of τ cos."""
        vectors = torch.stack([{**update.weights, **update.extra}[self.name] for update in updates])
        return (self.parameters.tau * cosines(vectors)).softmax(dim=1)
