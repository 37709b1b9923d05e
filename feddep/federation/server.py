"""The server S: it holds weights and no data."""

from collections.abc import Sequence

import torch

from feddep.federation.boundary import Payload
from feddep.utils.errors import PartitionError


def weighted_mean(payloads: Sequence[Payload], weights: Sequence[float]) -> Payload:
    """Σ wᵢ pᵢ / Σ wᵢ for each tensor of the payloads (FedAvg: McMahan et al., 2017, Algorithm 1).

    Raises:
        PartitionError: if the weights do not add up to a positive number.
    """
    total = float(sum(weights))
    if total <= 0:
        raise PartitionError(f"the weights {list(weights)} add up to {total}; some client needs training nodes")
    mean = {name: torch.zeros_like(tensor) for name, tensor in payloads[0].items()}
    for payload, weight in zip(payloads, weights, strict=True):
        for name, tensor in payload.items():
            mean[name].add_(tensor, alpha=weight / total)
    return mean


class Server:
    """Keeps the global weights and averages what clients send; subclasses may make something else of the mean.

    Attributes:
        weights: the global weights.
        updates: the clients' weights that they are the mean of; none at first.
    """

    def __init__(self, weights: Payload) -> None:
        """Start from initial weights, which are copied."""
        self.weights: Payload = {name: tensor.detach().clone() for name, tensor in weights.items()}
        self.updates: Sequence[Payload] = ()

    def aggregate(self, updates: Sequence[Payload], sizes: Sequence[float]) -> None:
        """Replace the weights by :meth:`server_step` of the mean of the clients' weights, each weighted by its size."""
        self.updates = updates
        self.weights = self.server_step(weighted_mean(updates, sizes))

    def server_step(self, mean: Payload) -> Payload:
        """The next global weights: the mean of the clients'."""
        return mean
