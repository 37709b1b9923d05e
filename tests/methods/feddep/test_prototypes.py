import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddep.methods.feddep.prototypes import find_prototypes


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**16))
def test_a_prototype_is_the_mean_of_its_cluster(nodes, width, count, seed):
    embeddings = torch.from_numpy(
        np.random.default_rng(seed).uniform(-1, 1, (nodes, width)).astype(np.float32)
    )
    found = find_prototypes(embeddings, count, "kmeans", seed, "client0")
    assert found.embeddings.shape == (count, width)
    assert found.cluster.shape == (nodes,)
    groups = int(found.cluster.max()) + 1
    assert groups == min(nodes, count)
    for c in range(groups):
        expected = np.mean(
            [embeddings[v].numpy() for v in range(nodes) if found.cluster[v] == c], axis=0
        )
        np.testing.assert_allclose(found.embeddings[c], expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(found.of_nodes, torch.stack([found.embeddings[c] for c in found.cluster]))


def test_more_prototypes_than_distinct_embeddings_are_repeated():
    embeddings = torch.tensor([[0.1, 0.2], [0.1, 0.2], [-0.3, 0.4]])
    found = find_prototypes(embeddings, 5, "kmeans", 0, "client0")
    assert found.embeddings.shape == (5, 2)
    assert {tuple(row) for row in found.embeddings.tolist()} == {
        tuple(row) for row in embeddings.tolist()
    }
    torch.testing.assert_close(found.of_nodes, embeddings)


def test_clusters_are_numbered_in_the_order_of_their_first_nodes():
    embeddings = torch.tensor([[0.9], [-0.9], [0.91], [0.0], [-0.91]])
    found = find_prototypes(embeddings, 3, "kmeans", 0, "client0")
    assert found.cluster.tolist() == [0, 1, 0, 2, 1]
    torch.testing.assert_close(found.embeddings, torch.tensor([[0.905], [-0.905], [0.0]]))
