import numpy as np
import torch

from feddep.methods.feddep.clustering import clusters, kmeans


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
