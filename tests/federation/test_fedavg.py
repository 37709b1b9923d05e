import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddep.federation.client import Update
from feddep.federation.server import Server, weighted_mean
from feddep.utils.errors import PartitionError


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(sum), st.integers(0, 2**16))
def test_weighted_mean_is_the_formula(sizes, seed):
    rng = np.random.default_rng(seed)
    payloads = [{"w": torch.from_numpy(rng.random((2, 3)))} for _ in sizes]
    expected = sum(
        size * payload["w"].numpy() for size, payload in zip(sizes, payloads, strict=True)
    ) / sum(sizes)
    np.testing.assert_allclose(weighted_mean(payloads, sizes)["w"], expected)


def test_equal_weights_stay_as_they_are_and_clients_without_nodes_do_not_count():
    weights, noise = {"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([9.0, 9.0])}
    assert weighted_mean([weights, weights, noise], [3, 1, 0])["w"].tolist() == [1, 2]


def test_no_training_nodes_at_all_is_an_error():
    with pytest.raises(PartitionError):
        weighted_mean([{"w": torch.zeros(1)}], [0])


@pytest.mark.parametrize("client_weights", ["nodes", "equal"])
def test_the_server_keeps_the_mean_and_its_own_copy(client_weights):
    weights = {"w": torch.zeros(2)}
    server = Server(weights, client_weights)
    weights["w"].add_(1)
    assert server.weights["w"].tolist() == [0, 0]
    server.aggregate(
        [Update(0, {"w": torch.ones(2)}, 1, 0.0), Update(1, {"w": torch.zeros(2)}, 3, 0.0)]
    )
    assert server.weights["w"].tolist() == (
        [0.25, 0.25] if client_weights == "nodes" else [0.5, 0.5]
    )
    assert server.weights_for(0) is server.weights
