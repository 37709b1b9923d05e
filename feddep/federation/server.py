"""The server S: it holds weights and no data."""

from collections.abc import Sequence

import torch

from feddep.federation.boundary import Payload
from feddep.federation.client import Update
from feddep.utils.errors import PartitionError


def weighted_mean(payloads: Sequence[Payload], weights: Sequence[float]) -> Payload:
    """Σ wᵢ pᵢ / Σ wᵢ for each tensor of the payloads (FedAvg: McMahan et al., 2017, Algorithm 1).

    Raises:
        PartitionError: if the weights do not add up to a positive number.
    """
    total = float(sum(weights))
    if total <= 0:
        raise PartitionError(
            f"the weights {list(weights)} add up to {total}; some client needs training nodes"
        )
    mean = {name: torch.zeros_like(tensor) for name, tensor in payloads[0].items()}
    for payload, weight in zip(payloads, weights, strict=True):
        for name, tensor in payload.items():
            mean[name].add_(tensor, alpha=weight / total)
    return mean


class Server:
    """Keeps the global weights, and replaces them by the mean of what clients send.

    A method with another server overrides :meth:`server_step`, which sees the mean, or
    :meth:`aggregate`, which sees every update, and :meth:`weights_for` where clients get weights of
    their own.

    Attributes:
        weights: the global weights.
        client_weights: what a client counts in the mean, as
            :class:`feddep.training.config.TrainingConfig` says.
    """

    def __init__(self, weights: Payload, client_weights: str = "nodes") -> None:
        """Start from initial weights, which are copied."""
        self.weights: Payload = {name: tensor.detach().clone() for name, tensor in weights.items()}
        self.client_weights = client_weights

    def shares(self, updates: Sequence[Update]) -> list[float]:
        """Weight of each client in the mean: its number of training ``nodes``, or ``equal`` for
        all.
        """
        return [update.nodes if self.client_weights == "nodes" else 1.0 for update in updates]

    def aggregate(self, updates: Sequence[Update]) -> None:
        """Replace the weights by :meth:`server_step` of the clients' mean; ``updates`` are in the
        order of clients.
        """
        self.weights = self.server_step(
            weighted_mean([update.weights for update in updates], self.shares(updates))
        )

    def server_step(self, mean: Payload) -> Payload:
        """The next global weights: the mean of the clients'."""
        return mean

    def weights_for(self, client: int) -> Payload:
        """Weights to send to client i: the global ones, the same for all."""
        return self.weights
