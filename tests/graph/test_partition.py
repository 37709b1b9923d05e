"""Partitions: the published procedure where it ends, our extension where it does not, and what is counted."""

import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from feddep.datasets.synthetic import planted_partition
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition, assign_communities, find_communities, louvain, modularity, statistics
from feddep.utils.errors import DataError, PartitionError
from feddep.utils.files import write_arrays


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_partition(240, 4, 12, 64, 6.0, 1.0, 8, 0.5, seed=0)


@pytest.fixture(scope="module")
def vague() -> Graph:
    """A graph whose communities are a matter of taste, so that every random draw of the Louvain method shows."""
    return planted_partition(240, 4, 12, 64, 2.0, 3.0, 8, 0.5, seed=0)


def as_networkx(graph: Graph) -> nx.Graph:
    copy = nx.Graph()
    copy.add_nodes_from(range(graph.num_nodes))
    copy.add_edges_from(graph.edges().tolist())
    return copy


def published(communities: np.ndarray, clients: int, delta: int) -> np.ndarray | None:
    """The published procedure, word for word; None where it would never end."""
    n = len(communities)
    rests, cut_off = [], []
    for number in range(max(communities) + 1):
        nodes = [node for node in range(n) if communities[node] == number]
        while len(nodes) > n // clients - delta:
            cut_off.append(nodes[: n // clients - delta])
            nodes = nodes[n // clients - delta :]
        rests.append(nodes)
    owner = np.full(n, -1)
    turn = 0
    for piece in sorted(rests + cut_off, key=len, reverse=True):
        passed = 0
        while np.count_nonzero(owner == turn) + len(piece) > n // clients + delta:
            turn = (turn + 1) % clients
            passed += 1
            if passed == clients:
                return None
        owner[piece] = turn
        turn = (turn + 1) % clients
    return owner


@st.composite
def assignments(draw):
    """Communities of a few nodes, and clients and delta that the graph allows."""
    drawn = draw(st.lists(st.integers(0, 5), min_size=1, max_size=60))
    communities = np.unique(drawn, return_inverse=True)[1]
    clients = draw(st.integers(1, len(drawn)))
    delta = draw(st.integers(0, len(drawn) // clients - 1))
    assume(delta or len(drawn) % clients == 0)
    return communities, clients, delta


# Of the kinds that random draws seldom make: the published procedure ends, or does not, late; a turn passes on to another client.
@given(assignments())
@example((np.repeat([0, 1, 2], 4), 2, 1))
@example((np.repeat(np.arange(13), 7), 4, 2))
@example((np.repeat(np.arange(6), [2, 2, 1, 1, 4, 1]), 3, 1))
def test_assigns_as_published_where_that_ends(assignment):
    expected = published(*assignment)
    found = assign_communities(*assignment)
    if expected is None:
        assert found.facts["cut_nodes"] > 0
    else:
        np.testing.assert_array_equal(found.client, expected)
        assert found.facts["cut_nodes"] == 0


@given(assignments())
@example((np.repeat([0, 1, 2], 4), 2, 1))
@example((np.repeat(np.arange(13), 7), 4, 2))
def test_every_client_has_nodes_but_not_too_many(assignment):
    communities, clients, delta = assignment
    n = len(communities)
    found = assign_communities(communities, clients, delta)
    assert found.num_clients == clients
    assert found.client.dtype == np.int64
    sizes = np.bincount(found.client, minlength=clients)
    assert len(sizes) == clients
    assert sizes.sum() == n
    assert sizes.min() >= 1
    assert sizes.max() <= n // clients + delta
    np.testing.assert_array_equal(np.sort(np.concatenate([found.nodes(i) for i in range(clients)])), np.arange(n))


def test_a_piece_that_fits_nowhere_is_cut():
    # Room for 12 / 2 + 1 = 7: when each client has a community of 4, the third fits none. Client 0, in turn, takes 3 of it.
    found = assign_communities(np.repeat([0, 1, 2], 4), 2, 1)
    assert found.client.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1]
    assert found.facts == {"cut_nodes": 4}


def test_the_rest_of_a_cut_piece_waits_for_larger_ones():
    # Room for 27 / 3 + 1 = 10: of the fourth community of 6, client 0 takes 4. Then comes the community of 3, for client 1,
    # and only then the rest of 2, for client 2.
    found = assign_communities(np.repeat([0, 1, 2, 3, 4], [6, 6, 6, 6, 3]), 3, 1)
    assert found.client.tolist() == [0] * 6 + [1] * 6 + [2] * 6 + [0, 0, 0, 0, 2, 2] + [1, 1, 1]
    assert found.facts == {"cut_nodes": 6}


@pytest.mark.parametrize(("clients", "delta"), [(0, 1), (101, 1), (3, -1), (5, 20), (3, 0)])
def test_impossible_partitions(clients, delta):
    with pytest.raises(PartitionError):
        assign_communities(np.zeros(100, dtype=np.int64), clients, delta)


def test_louvain_refuses_before_it_works(graph, monkeypatch):
    monkeypatch.setattr("feddep.graph.partition.find_communities", lambda *_: pytest.fail("the Louvain method was run"))
    with pytest.raises(PartitionError):
        louvain(graph, 20, seed=0, delta=20)


@pytest.mark.parametrize("clients", [3, 5, 10])
def test_louvain_keeps_communities_together(graph, clients):
    found = louvain(graph, clients, seed=0, delta=10)
    assert found.facts["communities"] > 3
    lost = statistics(graph, found)["missing_edges"]
    at_random = statistics(graph, Partition(np.random.default_rng(0).permutation(found.client), clients))["missing_edges"]
    assert lost < 0.6 * at_random


def test_seed_matters(vague):
    first, again, other = (louvain(vague, 3, seed, delta=20).client for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


def test_same_in_every_process(vague, tmp_path):
    vague.save(tmp_path / "graph.safetensors")
    program = (
        "import sys; from feddep.graph.graph import Graph; from feddep.graph.partition import louvain\n"
        "print(louvain(Graph.load(sys.argv[1]), 3, 0, 20).client.tolist())"
    )
    for salt in ("1", "2"):
        command = [sys.executable, "-c", program, tmp_path / "graph.safetensors"]
        done = subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": salt}, capture_output=True, check=True, text=True)
        assert done.stdout.strip() == str(louvain(vague, 3, 0, 20).client.tolist())


def test_modularity_against_networkx(graph):
    communities = find_communities(graph, 0)
    groups = [set(np.flatnonzero(communities == number).tolist()) for number in range(communities.max() + 1)]
    assert modularity(graph, communities) == pytest.approx(nx.community.modularity(as_networkx(graph), groups), abs=1e-12)
    assert louvain(graph, 3, 0, 20).facts["modularity"] == modularity(graph, communities)


def test_graph_without_edges():
    graph = Graph.from_edges(np.empty((0, 2)), np.eye(7), np.zeros(7), 2)
    found = louvain(graph, 2, seed=0, delta=1)
    assert found.facts == {"communities": 7, "modularity": 0.0, "cut_nodes": 0}
    assert statistics(graph, found)["mean_client_edges"] == 0


def test_statistics_against_networkx(graph):
    found = louvain(graph, 3, seed=0, delta=20)
    whole = as_networkx(graph)
    numbers = statistics(graph, found)
    inside = 0
    for client, row in enumerate(numbers["per_client"]):
        part = whole.subgraph(np.flatnonzero(found.client == client).tolist())
        labels = graph.labels[list(part)].tolist()
        assert row == {
            "client": client,
            "nodes": part.number_of_nodes(),
            "edges": part.number_of_edges(),
            "classes": [labels.count(label) for label in range(4)],
        }
        inside += part.number_of_edges()
    assert numbers["clients"] == 3
    assert numbers["mean_client_nodes"] == 80
    assert numbers["mean_client_edges"] == pytest.approx(inside / 3)
    assert numbers["missing_edges"] == whole.number_of_edges() - inside
    assert {key: numbers[key] for key in found.facts} == found.facts


def test_save_and_load(tmp_path):
    partition = assign_communities(np.arange(20), 3, 1)
    partition.save(tmp_path / "partition.safetensors")
    loaded = Partition.load(tmp_path / "partition.safetensors")
    np.testing.assert_array_equal(loaded.client, partition.client)
    assert loaded.client.dtype == np.int64
    assert loaded.num_clients == 3
    with pytest.raises(DataError):
        Partition.load(tmp_path / "partition.safetensors", "another key")


@pytest.mark.parametrize(
    "arrays",
    [
        {"train": np.array([0, 1])},
        {"client": np.array([], dtype=np.int64)},
        {"client": np.array([0, -1])},
        {"client": np.array([0, 2])},
    ],
)
def test_what_is_no_partition(tmp_path, arrays):
    path = tmp_path / "partition.safetensors"
    write_arrays(path, arrays)
    with pytest.raises(DataError):
        Partition.load(path)


def test_reading_a_partition_is_light():
    modules = "feddep.graph.partition, feddep.graph.partitioners, feddep.graph.split, feddep.graph.scaling"
    program = f"import sys, {modules}; print(*{{'torch', 'networkx'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == ""
