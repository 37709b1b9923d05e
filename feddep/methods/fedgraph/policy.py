"""FedGraph's sampling policy: how many neighbours each client draws in each layer, and what that is worth."""

from collections.abc import Sequence

import numpy as np
import torch

from feddep.federation.boundary import Payload


def fanouts_of(action: np.ndarray, most: int) -> tuple[int, ...]:
    """Fan-outs from 1 to ``most``, one for each number from 0 to 1 in the action: ⌈a · most⌉, and 1 for 0."""
    return tuple(int(fanout) for fanout in np.ceil(np.asarray(action) * most).clip(1, most))


def work(fanouts: Sequence[int], most: int) -> float:
    """Places of a sampled tree, Π (1 + f), as a share of what they are with the largest fan-out everywhere.

    This stands for the time that a client takes, which would differ from run to run.
    """
    return float(np.prod([(1 + fanout) / (1 + most) for fanout in fanouts]))


def reward(accuracy: float, target: float, cost: float, cost_weight: float) -> float:
    """64^(accuracy − target) − 1 − cost_weight · cost: the nearer to the target the more, and the less work the more."""
    return float(64 ** (accuracy - target)) - 1 - cost_weight * cost


def summary(weights: Sequence[Payload]) -> np.ndarray:
    """The state that the policy sees: the clients' weights by their principal components among clients; float64, shape (M²,).

    M vectors span at most M − 1 directions about their mean, so M components hold all that tells the clients apart.  They are
    computed from the M × M inner products.  A component is known but for its sign: the largest of its M scores is positive.
    """
    vectors = torch.stack([torch.cat([tensor.flatten() for tensor in payload.values()]) for payload in weights]).double()
    centred = vectors - vectors.mean(dim=0)
    values, components = np.linalg.eigh((centred @ centred.T).cpu().numpy())
    scores = components[:, ::-1] * np.sqrt(values[::-1].clip(0))
    largest = np.abs(scores).argmax(axis=0)
    signs = np.sign(scores[largest, np.arange(len(weights))])
    return np.asarray((scores * signs).ravel())
