"""Ways to partition a graph: what holds for all of them, what each promises, and what is
refused.
"""

import dataclasses
import hashlib
import random

import igraph
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feddep.datasets.synthetic import planted_partition
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition, statistics
from feddep.graph.partitioners import (
    METHODS,
    REVISION,
    igraph_communities,
    metis_partition,
    partition,
)
from feddep.utils.errors import Notice, PartitionError

WAYS = [
    *({"method": method} for method in METHODS if method not in ("overlap", "given")),
    {"method": "louvain", "engine": "igraph"},
]
"""Those that divide: tests/graph/test_overlap.py is of the other."""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_partition(600, 4, 12, 64, 6.0, 1.0, 8, 0.5, seed=0)


def named(way: dict[str, str]) -> str:
    return "-".join(way.values())


@pytest.mark.parametrize("way", WAYS[1:], ids=named)
@settings(max_examples=20)
@given(clients=st.integers(1, 12), seed=st.integers(0, 2**63 - 1))
def test_every_node_has_one_owner_and_every_client_a_node(
    graph: Graph, way: dict[str, str], clients: int, seed: int
):
    found = partition(graph, clients, seed, **way)
    assert found.num_clients == clients
    assert (found.client.dtype, found.client.shape) == (np.int64, (600,))
    sizes = np.bincount(found.client, minlength=clients)
    assert len(sizes) == clients
    assert sizes.min() >= 1
    most = {
        "louvain": 600 // clients + 20,
        "random": -(-600 // clients),
        "dirichlet": 600,
        "shards": 600 // clients + 2,
        "metis": 1.03 * 600 / clients + 1,
    }
    assert sizes.max() <= most[way["method"]]
    assert sizes.min() >= {
        "random": 600 // clients,
        "dirichlet": 10,
        "shards": 600 // clients - 2,
    }.get(way["method"], 1)


@pytest.mark.parametrize("way", WAYS, ids=named)
def test_the_partition_of_this_revision(way: dict[str, str]):
    """Whoever changes a partition raises its revision, here and in the module."""
    made = partition(
        planted_partition(240, 4, 12, 64, 2.0, 3.0, 8, 0.5, seed=0), 5, 3, **way
    ).client.astype("<i8")
    known = {
        1: {
            "louvain": "83c217b42f55",
            "random": "60c483f97c2b",
            "dirichlet": "44e2a3800e46",
            "shards": "648172d742b0",
            "metis": "6d3543a1808e",
            "louvain-igraph": "69730225c555",
        }
    }
    assert hashlib.sha256(made.tobytes()).hexdigest()[:12] == known[REVISION][named(way)]


def test_igraph_finds_the_communities_of_large_graphs_where_nobody_chooses(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("feddep.graph.partitioners._LARGE", 599)
    with pytest.warns(Notice):
        made = partition(graph, 5, 3)
    np.testing.assert_array_equal(made.client, partition(graph, 5, 3, engine="igraph").client)


def shares(graph: Graph, partition: Partition) -> np.ndarray:
    """Of each client its share of the nodes of each class, shape (M, C)."""
    held = np.array([client["classes"] for client in statistics(graph, partition)["per_client"]])
    return held / held.sum(axis=0)


@pytest.mark.parametrize("beta", [0.3, 1.0, 5.0])
def test_shares_are_those_of_the_dirichlet_distribution(graph: Graph, beta: float):
    """Mean 1/M and variance (M − 1) / (M² (βM + 1)); drawing again, where a client has few nodes,
    is too rare to change them.
    """
    drawn = np.concatenate(
        [shares(graph, partition(graph, 2, seed, "dirichlet", beta=beta)).T for seed in range(250)]
    )
    variance = 1 / (4 * (2 * beta + 1))
    assert drawn[:, 0].mean() == pytest.approx(1 / 2, abs=4 * np.sqrt(variance / 1000))
    assert drawn[:, 0].var() == pytest.approx(variance, rel=0.15)


def test_igraph_draws_from_the_seed_and_leaves_its_generator_as_it_was(graph: Graph):
    random.seed(1)
    first = igraph_communities(graph, 5)
    random.seed(2)
    np.testing.assert_array_equal(igraph_communities(graph, 5), first)
    random.seed(3)
    edges = igraph.Graph.Erdos_Renyi(30, m=40).get_edgelist()
    random.seed(3)
    assert igraph.Graph.Erdos_Renyi(30, m=40).get_edgelist() == edges


@pytest.mark.parametrize("way", WAYS, ids=named)
def test_a_graph_without_edges(way: dict[str, str]):
    graph = Graph.from_edges(np.empty((0, 2)), np.eye(9), np.arange(9) % 3, 3)
    found = partition(graph, 3, 0, delta=1, **way)
    assert np.bincount(found.client, minlength=3).min() >= 1
    assert statistics(graph, found)["mean_client_edges"] == found.facts.get("modularity", 0) == 0


@pytest.mark.parametrize("way", WAYS, ids=named)
@pytest.mark.parametrize("clients", [0, 601])
def test_too_few_or_too_many_clients(graph: Graph, way: dict[str, str], clients: int):
    with pytest.raises(PartitionError):
        partition(graph, clients, 0, **way)


@pytest.mark.parametrize(("clients", "shards"), [(2, 2), (10, 2), (6, 3), (60, 10)])
def test_a_client_has_the_classes_of_its_shards(graph: Graph, clients: int, shards: int):
    """A shard of n / (M k) nodes, which is no larger than a class, is of one or two classes."""
    found = [partition(graph, clients, seed, "shards", shards=shards) for seed in range(200)]
    held = np.array([shares(graph, each) > 0 for each in found])
    assert held.sum(axis=(1, 2)).max() <= clients * shards + 3  # three shards are of two classes
    places = held.sum(axis=0)
    assert abs(places - places.mean(axis=0)).max() < 4.5 * np.sqrt(200) / 2


def test_more_shards_than_nodes(graph: Graph):
    assert len(partition(graph, 60, 0, "shards", shards=10).client) == 600
    with pytest.raises(PartitionError):
        partition(graph, 60, 0, "shards", shards=11)


def test_shares_too_skewed_for_so_many_clients(graph: Graph):
    with pytest.raises(PartitionError):
        partition(graph, 50, 0, "dirichlet", beta=0.001)


def test_clients_that_metis_leaves_without_nodes(graph: Graph, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pymetis.part_graph", lambda *_, **__: (0, [0, 2] * 300))
    with pytest.raises(PartitionError):
        metis_partition(graph, 4, 0)


def test_owners_that_the_data_say(graph: Graph):
    owned = dataclasses.replace(graph, client=np.arange(600) % 4)
    for clients in (4, None):
        found = partition(owned, clients, 0, "given")
        assert (found.client.tolist(), found.num_clients) == ((np.arange(600) % 4).tolist(), 4)
    assert statistics(owned, found)["cut_nodes"] == 0
    for clients, other in (
        (3, owned),
        (4, graph),
        (None, dataclasses.replace(graph, client=np.arange(600) % 4 * 2)),
    ):
        with pytest.raises(PartitionError):
            partition(other, clients, 0, "given")
