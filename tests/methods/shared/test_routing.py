"""Embeddings reach those who asked for them, and everything is counted."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from divided import expanded, random_task, trained
from feddep.methods.shared.routing import Router, downward, upward
from method_tasks import counted


@given(st.integers(1, 4), st.integers(0, 2**16))
def test_everybody_gets_the_rows_of_the_names_that_they_asked_for(clients, seed):
    rng = np.random.default_rng(seed)
    names = rng.random(12)
    published = np.array_split(rng.permutation(names), clients)
    wanted = [rng.choice(names, rng.integers(0, 6)) for _ in range(clients)]
    rows = [torch.from_numpy(np.stack([own, -own], axis=1)) for own in published]
    for asked, delivered in zip(wanted, Router(published, wanted).deliver(rows), strict=True):
        np.testing.assert_array_equal(delivered, np.stack([asked, -asked], axis=1))


def test_an_exchange_costs_a_row_for_each_endpoint_of_a_cross_client_edge():
    task = random_task(layers=3)
    all_edges, _, boundary = expanded(task, trained(task), range(1, 3))
    expected = {}
    for i, own in enumerate(all_edges):
        for level in (1, 2):
            expected[i, "up", upward(level)] = 1, len(own.endpoints) * 5 * 4
            expected[i, "down", downward(level)] = 1, len(own.outside) * 5 * 4
    assert counted(boundary.communication.rows()) == expected


def test_who_has_no_edges_to_others_sends_and_gets_nothing():
    for task in (random_task(edges=0), random_task(clients=1)):
        assert expanded(task, trained(task), range(2))[2].communication.rows() == []
