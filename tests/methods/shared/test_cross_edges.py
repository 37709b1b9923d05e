"""Edges to other clients, against loops over the global graph."""

import numpy as np
from hypothesis import given

from divided import random_task, tasks
from feddep.methods.shared.cross_edges import cross_edges, expand


@given(tasks())
def test_they_hold_the_edges_to_others_and_no_more(task):
    graph, owner = task.graph, task.partition.client
    for i, own in enumerate(cross_edges(task)):
        expected = {
            (v, u)
            for v in range(graph.num_nodes)
            if owner[v] == i
            for u in graph.adjacency[v].indices
            if owner[u] != i
        }
        rows, columns = own.links.nonzero()
        assert {
            (own.nodes[v], own.outside[u]) for v, u in zip(rows, columns, strict=True)
        } == expected
        assert set(own.outside) == {u for _, u in expected}
        assert set(own.nodes[own.endpoints]) == {v for v, _ in expected}
        assert (np.diff(own.outside) > 0).all()


def test_the_expanded_graph_has_all_neighbours_of_the_client_s_nodes_and_none_of_the_stand_ins():
    task = random_task()
    for (graph, _), own in zip(task.subgraphs(), cross_edges(task), strict=True):
        wide, n = expand(graph, own.links), graph.num_nodes
        names = np.concatenate([own.nodes, own.outside])
        for v in range(wide.num_nodes):
            neighbours = wide.indices[wide.indptr[v] : wide.indptr[v + 1]]
            expected = task.graph.adjacency[own.nodes[v]].indices if v < n else []
            assert sorted(names[neighbours]) == sorted(expected)
            assert (np.diff(neighbours) > 0).all()
        assert (wide.features[:n] != graph.features).nnz == 0
        assert wide.features[n:].nnz == 0
