import numpy as np
import pytest
import torch

from feddep.methods.feddep import clustering
from feddep.methods.feddep.clustering import clusters, kmeans, sharpened, soft_assignment
from method_tasks import watch


def test_kmeans_finds_what_is_there():
    """Four tight groups far from one another, within (−1, 1)."""
    draws, group = torch.Generator().manual_seed(0), np.repeat(np.arange(4), 25)
    centres = torch.rand(4, 6, generator=draws) * 1.6 - 0.8
    points = centres[torch.from_numpy(group)] + 0.02 * torch.randn(100, 6, generator=draws)
    found = clusters(points, 4, "kmeans", 0, "client0")
    assert len({*zip(found.tolist(), group.tolist(), strict=True)}) == len({*found.tolist()}) == 4
    _, centres = kmeans(points, 4, 0)
    expected = np.stack([points[group == g].numpy().mean(axis=0) for g in range(4)])
    np.testing.assert_allclose(
        centres[np.lexsort(centres.T)], expected[np.lexsort(expected.T)], atol=1e-5
    )


def test_assignments_of_deep_embedded_clustering_are_its_equations():
    """Xie et al. (2016), Equations 1 and 3, a number at a time."""
    rng = np.random.default_rng(0)
    codes, centres = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    q = np.empty((5, 4))
    for i, c in np.ndindex(5, 4):
        q[i, c] = 1 / (1 + ((codes[i] - centres[c]) ** 2).sum())
    for i in range(5):
        q[i] = q[i] / q[i].sum()
    p = np.array([[q[i, c] ** 2 / q[:, c].sum() for c in range(4)] for i in range(5)])
    p = np.array([row / row.sum() for row in p])
    found = soft_assignment(torch.from_numpy(codes), torch.from_numpy(centres))
    np.testing.assert_allclose(found.numpy(), q, rtol=1e-9)
    np.testing.assert_allclose(sharpened(found).numpy(), p, rtol=1e-9)


def test_deep_embedded_clustering_descends_as_the_authors_code(monkeypatch: pytest.MonkeyPatch):
    """Each of four layers for 2 epochs with a rate of 0.1, the whole for 3 and the clustering for 5
    with 0.01.
    """
    calls = watch(monkeypatch, clustering, "_descend")
    clustering.deep_embedded_clustering(torch.rand(20, 4), 3, 0)
    assert [(call["epochs"], call["rate"]) for call in calls] == [(2, 0.1)] * 4 + [
        (3, 0.01),
        (5, 0.01),
    ]
