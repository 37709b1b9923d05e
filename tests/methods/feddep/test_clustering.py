import numpy as np
import pytest
import torch

from feddep.methods.feddep.clustering import clusters, kmeans, sharpened, soft_assignment

METHODS = ["kmeans", "dec"]


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


def test_deep_embedded_clustering_keeps_tight_groups_together():
    points, group = blobs(2, 60)
    found = clusters(points, 2, "dec", 0, "client0")
    assert same_partition(found, group)


@pytest.mark.parametrize("method", METHODS)
def test_fewer_distinct_points_than_clusters(method):
    points = torch.tensor([[0.0, 0.1], [0.5, 0.5], [0.0, 0.1], [-0.4, 0.2]])
    found = clusters(points, 7, method, 0, "client0")
    assert found.shape == (4,)
    assert found[0] == found[2]
    assert len(set(found.tolist())) <= 3
    assert clusters(torch.zeros(5, 2), 3, method, 0, "client0").tolist() == [0] * 5


@pytest.mark.parametrize("method", METHODS)
def test_it_is_a_function_of_its_seed(method):
    points = torch.rand(60, 5, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002 - the global stream must not matter
    first = clusters(points, 8, method, 0, "client0")
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    assert np.array_equal(first, clusters(points, 8, method, 0, "client0"))


def test_soft_and_sharpened_assignments_are_their_formulas():
    codes, centres = (torch.randn(n, 3, generator=torch.Generator().manual_seed(n)) for n in (5, 4))
    q = soft_assignment(codes, centres)
    p = sharpened(q)
    for i in range(5):
        kernel = [1 / (1 + sum((codes[i] - centre) ** 2)) for centre in centres]
        np.testing.assert_allclose(q[i], [each / sum(kernel) for each in kernel], rtol=1e-4)
        square = [q[i, c] ** 2 / sum(q[:, c]) for c in range(4)]
        np.testing.assert_allclose(p[i], [each / sum(square) for each in square], rtol=1e-4)
