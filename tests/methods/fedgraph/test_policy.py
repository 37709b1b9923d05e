"""Fan-outs, work, reward and state."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddep.graph.sampling import sample_trees
from feddep.methods.fedgraph.fedgraph import fanouts_of, reward, summary, work
from graphs import star


def test_fanouts_divide_the_range_evenly():
    assert fanouts_of(np.array([0, 0.2, 0.21, 0.5, 0.81, 1]), 5) == (1, 1, 2, 3, 5, 5)


@pytest.mark.parametrize("fanouts", [(1, 1), (5, 5), (2, 3), (4, 1, 2)])
def test_work_is_the_size_of_the_sampled_trees(fanouts):
    graph = star(6)
    sizes = [
        sample_trees(graph, np.zeros(1), chosen, np.random.default_rng(0)).nodes.size
        for chosen in (fanouts, [5] * len(fanouts))
    ]
    assert work(fanouts, 5) == pytest.approx(sizes[0] / sizes[1])


def test_reward_is_the_formula():
    assert reward(0.9, 0.9, 0.0, 0.1) == 0
    assert reward(1.0, 0.5, 0.5, 0.2) == pytest.approx(8 - 1 - 0.1)
    assert reward(0.8, 0.9, 0.3, 0.1) < reward(0.8, 0.9, 0.2, 0.1) < reward(0.81, 0.9, 0.2, 0.1)


@given(st.integers(1, 5), st.integers(0, 2**16))
def test_the_state_is_the_principal_components_of_the_weights(clients, seed):
    rng = np.random.default_rng(seed)
    payloads = [
        {"w": torch.from_numpy(rng.normal(size=(3, 2))), "b": torch.from_numpy(rng.normal(size=2))}
        for _ in range(clients)
    ]
    scores = summary(payloads).reshape(clients, clients)
    vectors = np.array(
        [
            np.concatenate([payload["w"].numpy().ravel(), payload["b"].numpy()])
            for payload in payloads
        ]
    )
    left, values, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    expected = np.zeros((clients, clients))
    expected[:, : len(values)] = left * values
    np.testing.assert_allclose(np.abs(scores), np.abs(expected), atol=1e-6)
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    np.testing.assert_allclose(
        np.linalg.norm(scores[:, None] - scores[None], axis=2), distances, atol=1e-6
    )
    # The largest score of a component is positive.
    assert np.abs(scores).max(axis=0) == pytest.approx(scores.max(axis=0))
