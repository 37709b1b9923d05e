"""Halos and missing neighbours against their definitions, node by node."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from feddep.graph.graph import Graph
from feddep.graph.halo import halo, missing_neighbours, with_halo
from feddep.graph.partition import Partition
from graphs import graphs, neighbours


def distances(graph: Graph, sources: np.ndarray) -> dict[int, int]:
    """Distance of every node that can be reached from one of the sources, by breadth-first
    search.
    """
    found = {int(node): 0 for node in sources}
    waiting = list(found)
    for node in waiting:
        for other in neighbours(graph, node):
            if other not in found:
                found[other] = found[node] + 1
                waiting.append(other)
    return found


def owned(draw: st.DataObject, graph: Graph) -> np.ndarray:
    """Any set of nodes of a graph, perhaps none."""
    return np.flatnonzero(
        draw.draw(st.lists(st.booleans(), min_size=graph.num_nodes, max_size=graph.num_nodes))
    )


@given(graphs(), st.integers(0, 4), st.data())
def test_a_halo_holds_exactly_the_nodes_within_so_many_hops(graph, hops, data):
    nodes = owned(data, graph)
    expected = sorted(
        node for node, distance in distances(graph, nodes).items() if 0 < distance <= hops
    )
    assert halo(graph, nodes, hops).tolist() == expected


@given(graphs(), st.integers(0, 3), st.data())
def test_own_nodes_come_first_and_all_edges_among_the_chosen_are_there(graph, hops, data):
    nodes = owned(data, graph)
    extended = with_halo(graph, nodes, hops)
    names = [*nodes.tolist(), *halo(graph, nodes, hops).tolist()]
    assert extended.num_nodes == len(names)
    for k, node in enumerate(names):
        assert {names[other] for other in neighbours(extended, k)} == set(
            neighbours(graph, node)
        ) & set(names)
    assert np.array_equal(extended.features.toarray(), graph.features.toarray()[names])
    assert np.array_equal(extended.labels, graph.labels[names])


@given(graphs(), st.data())
def test_missing_neighbours_are_those_of_other_clients_in_equal_shares(graph, data):
    owners = data.draw(
        st.lists(st.integers(0, 2), min_size=graph.num_nodes, max_size=graph.num_nodes)
    )
    matrix = missing_neighbours(graph, Partition(np.array(owners), 3))
    assert matrix.dtype == np.float32
    dense = matrix.toarray()
    for node in range(graph.num_nodes):
        missing = [other for other in neighbours(graph, node) if owners[other] != owners[node]]
        expected = np.zeros(graph.num_nodes, dtype=np.float32)
        expected[missing] = 1 / max(len(missing), 1)
        assert np.array_equal(dense[node], expected)
