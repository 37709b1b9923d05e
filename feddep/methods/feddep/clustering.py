"""Clustering functions for FedDEP's prototypes: k-means, and deep embedded clustering as in the
authors' code.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np
import torch
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from feddep.nn.dropout import dropout_mask
from feddep.nn.linear import Linear
from feddep.utils import seeding

Clustering = Literal["kmeans", "dec"]

_RESTARTS = 10  # of k-means, of which the tightest clustering is kept


def clusters(points: Tensor, count: int, method: Clustering, seed: int, name: str) -> np.ndarray:
    """Cluster of each of ``points``, shape (n, d): integers without further meaning, shape (n,).

    There are ``count`` clusters, or fewer where fewer points are distinct.  ``name`` names the
    random streams.
    """
    stream = seeding.derive_seed(seed, name, "clustering")
    count = min(count, len(np.unique(points.cpu().numpy(), axis=0)))
    return (
        kmeans(points, count, stream)[0]
        if method == "kmeans"
        else deep_embedded_clustering(points.cpu(), count, stream)
    )


def kmeans(points: Tensor, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """k-means (Lloyd's algorithm from k-means++ starts); returns each point's cluster, (n,), and
    the centres, (count, d).
    """
    with threadpool_limits(1):  # sums are then added in one order, on every machine
        # In double precision, so that what is distinct stays distinct.
        found = KMeans(count, n_init=_RESTARTS, random_state=seed % 2**32).fit(
            points.detach().cpu().double().numpy()
        )
    return found.labels_, found.cluster_centers_


_CORRUPTION = 0.2
_BATCH = 32
_MOMENTUM = 0.9


def deep_embedded_clustering(points: Tensor, count: int, seed: int) -> np.ndarray:
    """Deep embedded clustering (Xie et al., 2016), with the sizes and epochs of FedDEP's published
    code.

    A denoising autoencoder, its encoder d-128-512-128-d and its decoder the mirror image, is
    trained layer by layer (2 epochs each, SGD 0.1) and then as a whole (3 epochs, SGD 0.01).
    k-means on the codes gives first centres; encoder and centres are then refined for 5 epochs (SGD
    0.01), so that the soft assignment of codes to centres, q_ic ∝ 1 / (1 + ‖h_i − μ_c‖²), comes
    closer to its own sharpened version p_ic ∝ q_ic² / Σ_i q_ic.

    Takes points of shape (n, d) on the CPU, at least ``count`` of them distinct; returns the
    likeliest cluster of each, (n,).
    """
    generator = torch.Generator().manual_seed(seed)
    width = points.shape[1]
    widths = [width, 128, 512, 128, width]
    encoders = [Linear(a, b) for a, b in itertools.pairwise(widths)]
    decoders = [Linear(b, a) for a, b in itertools.pairwise(widths)]
    for layer in (*encoders, *decoders):
        layer.reset_parameters(generator)

    encode = partial(_apply, encoders)

    def autoencoder(x: Tensor) -> Tensor:
        return _apply(decoders[::-1], encode(x))

    inputs = points
    for encoder, decoder in zip(encoders, decoders, strict=True):
        step: nn.Module = (
            nn.Sequential(encoder) if encoder is encoders[-1] else nn.Sequential(encoder, nn.ReLU())
        )
        pair = nn.Sequential(step, decoder)
        _descend(partial(_restoring_loss, pair, generator), inputs, [pair], 2, 0.1, generator)
        inputs = step(inputs).detach()

    _descend(
        partial(_restoring_loss, autoencoder, generator),
        points,
        [*encoders, *decoders],
        3,
        0.01,
        generator,
    )

    codes = encode(points).detach()
    distinct = len(np.unique(codes.numpy(), axis=0))
    centres = nn.ParameterList(
        [torch.from_numpy(kmeans(codes, min(count, distinct), seed)[1]).float()]
    )

    def assignment(x: Tensor) -> Tensor:
        return soft_assignment(encode(x), centres[0])

    def divergence(x: Tensor) -> Tensor:
        q = assignment(x)
        p = sharpened(q.detach())
        return (p * (p.log() - q.log())).sum(dim=1).mean()

    _descend(divergence, points, [*encoders, centres], 5, 0.01, generator)
    with torch.no_grad():
        return assignment(points).argmax(dim=1).numpy()


def soft_assignment(codes: Tensor, centres: Tensor) -> Tensor:
    """q_ic = (1 + ‖h_i − μ_c‖²)⁻¹, each row divided by its sum (Xie et al., 2016, Equation 1);
    shape (n, count).
    """
    q = 1 / (1 + torch.cdist(codes, centres).square())
    return q / q.sum(dim=1, keepdim=True)


def sharpened(q: Tensor) -> Tensor:
    """p_ic = q_ic² / Σ_i q_ic, each row divided by its sum (Xie et al., 2016, Equation 3); shape
    (n, count).
    """
    p = q.square() / q.sum(dim=0)
    return p / p.sum(dim=1, keepdim=True)


def _apply(layers: Sequence[Linear], x: Tensor) -> Tensor:
    for layer in layers[:-1]:
        x = layer(x).relu()
    return layers[-1](x)


def _restoring_loss(
    network: Callable[[Tensor], Tensor], generator: torch.Generator, x: Tensor
) -> Tensor:
    return mse_loss(network(x * dropout_mask(x, _CORRUPTION, generator)), x)


def _descend(
    loss: Callable[[Tensor], Tensor],
    points: Tensor,
    modules: Sequence[nn.Module],
    epochs: int,
    rate: float,
    generator: torch.Generator,
) -> None:
    """Minimise ``loss`` by mini-batches."""
    optimizer = torch.optim.SGD(
        itertools.chain(*(module.parameters() for module in modules)), rate, _MOMENTUM
    )
    for _ in range(epochs):
        for batch in points[torch.randperm(len(points), generator=generator)].split(_BATCH):
            optimizer.zero_grad()
            loss(batch).backward()
            optimizer.step()
