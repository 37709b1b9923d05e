"""Partitions: the published procedure where it ends, our extension where it does not, and what is
counted.
"""

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from feddep.datasets.synthetic import planted_partition
from feddep.graph.graph import Graph
from feddep.graph.partition import (
    assign_communities,
    find_communities,
    louvain,
    modularity,
    statistics,
)
from feddep.utils.errors import PartitionError


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_partition(240, 4, 12, 64, 6.0, 1.0, 8, 0.5, seed=0)


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


# Of the kinds that random draws seldom make: the published procedure ends, or does not, late; a
# turn passes on to another client.
@given(assignments())
@example((np.repeat([0, 1, 2], 4), 2, 1))
@example((np.repeat(np.arange(13), 7), 4, 2))
@example((np.repeat(np.arange(6), [2, 2, 1, 1, 4, 1]), 3, 1))
def test_assigns_as_published_where_that_ends_and_never_too_many(assignment):
    communities, clients, delta = assignment
    found, expected = assign_communities(*assignment), published(*assignment)
    assert (found.facts["cut_nodes"] == 0) == (expected is not None)
    if expected is not None:
        np.testing.assert_array_equal(found.client, expected)
    assert found.num_clients == clients
    assert found.client.dtype == np.int64
    sizes = np.bincount(found.client, minlength=clients)
    assert len(sizes) == clients
    assert 1 <= sizes.min() <= sizes.max() <= len(communities) // clients + delta


@pytest.mark.parametrize(
    ("sizes", "clients", "expected", "cut"),
    [
        # Room for 12 / 2 + 1 = 7: when each client has a community of 4, the third fits none.
        # Client 0, in turn, takes 3 of it.
        ([4, 4, 4], 2, [0] * 4 + [1] * 4 + [0, 0, 0, 1], 4),
        # Room for 27 / 3 + 1 = 10: of the fourth community of 6, client 0 takes 4. Then comes the
        # community of 3, for client 1, and only then the rest of 2, for client 2.
        ([6, 6, 6, 6, 3], 3, [0] * 6 + [1] * 6 + [2] * 6 + [0, 0, 0, 0, 2, 2] + [1, 1, 1], 6),
        # The rest of 2, for client 1, comes before communities of 1.
        ([6, 6, 6, 6, 1, 1, 1], 3, [0] * 6 + [1] * 6 + [2] * 6 + [0, 0, 0, 0, 1, 1] + [2, 1, 2], 6),
    ],
)
def test_a_piece_that_fits_nowhere_is_cut_and_its_rest_waits_for_larger_ones(
    sizes, clients, expected, cut
):
    found = assign_communities(np.repeat(np.arange(len(sizes)), sizes), clients, 1)
    assert found.client.tolist() == expected
    assert found.facts == {"cut_nodes": cut}


@pytest.mark.parametrize(("clients", "delta"), [(101, 1), (5, 20), (3, 0)])
def test_impossible_partitions(clients, delta):
    with pytest.raises(PartitionError):
        assign_communities(np.zeros(100, dtype=np.int64), clients, delta)


def as_networkx(graph: Graph) -> nx.Graph:
    copy = nx.Graph()
    copy.add_nodes_from(range(graph.num_nodes))
    copy.add_edges_from(graph.edges().tolist())
    return copy


def test_modularity_against_networkx(graph):
    communities = find_communities(graph, 0)
    groups = [
        set(np.flatnonzero(communities == number).tolist())
        for number in range(communities.max() + 1)
    ]
    assert modularity(graph, communities) == pytest.approx(
        nx.community.modularity(as_networkx(graph), groups), abs=1e-12
    )
    assert louvain(graph, 3, 0, 20).facts["modularity"] == modularity(graph, communities)


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
