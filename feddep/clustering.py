"""Clustering functions for FedDEP's prototypes: k-means, and deep embedded clustering as in the authors' code."""

import itertools
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import torch
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from feddep import seeding
from feddep.nn.dropout import dropout_mask
from feddep.nn.embedding import Linear

Clustering = Literal["kmeans", "dec"]
"""``kmeans``: :func:`kmeans`; ``dec``: :func:`deep_embedded_clustering`."""

_RESTARTS = 10
"""k-means is run this often and the tightest clustering is kept."""


def clusters(points: Tensor, count: int, method: Clustering, seed: int, name: str) -> np.ndarray:
    """Group points into at most ``count`` clusters, fewer where fewer points are distinct.

    Args:
        points: shape (n, d).
        count: number of clusters wanted, at least 1.
        method: the clustering function.
        seed: the run's seed.
        name: names the random streams.

    Returns:
        Cluster of each point, integers without further meaning, shape (n,).
    """
    stream = seeding.derive_seed(seed, name, "clustering")
    count = min(count, len(np.unique(points.cpu().numpy(), axis=0)))
    return kmeans(points, count, stream)[0] if method == "kmeans" else deep_embedded_clustering(points.cpu(), count, stream)


def kmeans(points: Tensor, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """k-means (Lloyd's algorithm from k-means++ starts); returns each point's cluster, (n,), and the centres, (count, d)."""
    with threadpool_limits(1):  # sums are then added in one order, on every machine
        # In double precision, so that what is distinct stays distinct.
        found = KMeans(count, n_init=_RESTARTS, random_state=seed % 2**32).fit(points.detach().cpu().double().numpy())
    return found.labels_, found.cluster_centers_


_CORRUPTION = 0.2
_BATCH = 32
_MOMENTUM = 0.9


def deep_embedded_clustering(points: Tensor, count: int, seed: int) -> np.ndarray:
    """Deep embedded clustering (Xie et al., 2016), with the sizes and epochs of FedDEP's published code.

    A denoising autoencoder, its encoder d-128-512-128-d and its decoder the mirror image, is trained layer by layer (2
    epochs each, SGD 0.1) and then as a whole (3 epochs, SGD 0.01).  k-means on the codes gives first centres; encoder and
    centres are then refined for 5 epochs (SGD 0.01), so that the soft assignment of codes to centres,
    q_ic ∝ 1 / (1 + ‖h_i − μ_c‖²), comes closer to its own sharpened version p_ic ∝ q_ic² / Σ_i q_ic.

    Args:
        points: shape (n, d), on the CPU.
        count: number of clusters, at most the number of distinct points.
        seed: seed of all draws.

    Returns:
        The likeliest cluster of each point, shape (n,).
    """
    generator = torch.Generator().manual_seed(seed)
    width = points.shape[1]
    widths = [width, 128, 512, 128, width]
    encoders = [Linear(a, b) for a, b in itertools.pairwise(widths)]
    decoders = [Linear(b, a) for a, b in itertools.pairwise(widths)]
    for layer in (*encoders, *decoders):
        layer.draw(generator)

    def encode(x: Tensor) -> Tensor:
        for layer in encoders[:-1]:
            x = layer(x).relu()
        return encoders[-1](x)

    def decode(h: Tensor) -> Tensor:
        for layer in decoders[:0:-1]:
            h = layer(h).relu()
        return decoders[0](h)

    inputs = points
    for encoder, decoder in zip(encoders, decoders, strict=True):
        last = encoder is encoders[-1]

        def step(x: Tensor, encoder: Linear = encoder, last: bool = last) -> Tensor:
            return encoder(x) if last else encoder(x).relu()

        def restored(x: Tensor, decoder: Linear = decoder, step: Callable[[Tensor], Tensor] = step) -> Tensor:
            return mse_loss(decoder(step(_corrupt(x, generator))), x)

        _descend(restored, inputs, [encoder, decoder], 2, 0.1, generator)
        inputs = step(inputs).detach()

    _descend(lambda x: mse_loss(decode(encode(_corrupt(x, generator))), x), points, [*encoders, *decoders], 3, 0.01, generator)

    codes = encode(points).detach()
    distinct = len(np.unique(codes.numpy(), axis=0))
    centres = nn.ParameterList([torch.from_numpy(kmeans(codes, min(count, distinct), seed)[1]).float()])

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
    """q_ic = (1 + ‖h_i − μ_c‖²)⁻¹, each row divided by its sum (Xie et al., 2016, Equation 1); shape (n, count)."""
    q = 1 / (1 + torch.cdist(codes, centres).square())
    return q / q.sum(dim=1, keepdim=True)


def sharpened(q: Tensor) -> Tensor:
    """p_ic = q_ic² / Σ_i q_ic, each row divided by its sum (Xie et al., 2016, Equation 3); shape (n, count)."""
    p = q.square() / q.sum(dim=0)
    return p / p.sum(dim=1, keepdim=True)


def _corrupt(x: Tensor, generator: torch.Generator) -> Tensor:
    return x * dropout_mask(x, _CORRUPTION, generator)


def _descend(
    loss: Callable[[Tensor], Tensor],
    points: Tensor,
    modules: list[nn.Module],
    epochs: int,
    rate: float,
    generator: torch.Generator,
) -> None:
    """Minimise ``loss`` by mini-batches."""
    optimizer = torch.optim.SGD(itertools.chain(*(module.parameters() for module in modules)), rate, _MOMENTUM)
    for batch in _batches(points, epochs, generator):
        optimizer.zero_grad()
        loss(batch).backward()
        optimizer.step()


def _batches(points: Tensor, epochs: int, generator: torch.Generator) -> Iterator[Tensor]:
    for _ in range(epochs):
        yield from points[torch.randperm(len(points), generator=generator)].split(_BATCH)
