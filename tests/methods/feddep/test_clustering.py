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


def test_fewer_distinct_points_than_clusters():
    points = torch.tensor([[0.0, 0.1], [0.5, 0.5], [0.0, 0.1], [-0.4, 0.2]])
    found = clusters(points, 7, "kmeans", 0, "client0")
    assert found.shape == (4,)
    assert found[0] == found[2]
    assert len(set(found.tolist())) == 3
    assert clusters(torch.zeros(5, 2), 3, "kmeans", 0, "client0").tolist() == [0] * 5


def test_it_is_a_function_of_its_seed():
    points = torch.rand(60, 5, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - the global stream must not matter
    first = clusters(points, 8, "kmeans", 0, "client0")
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    assert np.array_equal(first, clusters(points, 8, "kmeans", 0, "client0"))
