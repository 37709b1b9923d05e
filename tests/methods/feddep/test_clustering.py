import numpy as np
import torch

from feddep.methods.feddep.clustering import clusters, kmeans


def blobs(count: int = 4, each: int = 25, width: int = 6, spread: float = 0.02) -> tuple[torch.Tensor, np.ndarray]:
    """Points in tight groups far from one another, within (−1, 1), and the group of each."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.rand(count, width, generator=generator) * 1.6 - 0.8
    group = np.repeat(np.arange(count), each)
    return centres[torch.from_numpy(group)] + spread * torch.randn(count * each, width, generator=generator), group


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    return len({*zip(a.tolist(), b.tolist(), strict=True)}) == len(set(a.tolist())) == len(set(b.tolist()))


def test_kmeans_finds_what_is_there():
    points, group = blobs()
    assert same_partition(clusters(points, 4, "kmeans", 0, "client0"), group)
    _, centres = kmeans(points, 4, 0)
    expected = np.stack([points[group == g].numpy().mean(axis=0) for g in range(4)])
    np.testing.assert_allclose(centres[np.lexsort(centres.T)], expected[np.lexsort(expected.T)], atol=1e-5)
