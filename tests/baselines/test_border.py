"""Edges to other clients, against loops over the global graph."""

import numpy as np
from divided import problems, random_problem
from hypothesis import given

from feddep.baselines.border import borders, expand


@given(problems())
def test_a_border_holds_the_edges_to_others_and_no_more(problem):
    graph, owner = problem.graph, problem.partition.client
    for i, border in enumerate(borders(problem)):
        expected = {(v, u) for v in range(graph.num_nodes) if owner[v] == i for u in graph.adjacency[v].indices if owner[u] != i}
        rows, columns = border.links.nonzero()
        assert {(border.nodes[v], border.outside[u]) for v, u in zip(rows, columns, strict=True)} == expected
        assert set(border.outside) == {u for _, u in expected}
        assert set(border.nodes[border.boundary]) == {v for v, _ in expected}
        assert (np.diff(border.outside) > 0).all()


@given(problems())
def test_what_one_client_asks_for_others_have_at_their_border(problem):
    found = borders(problem)
    published = np.concatenate([border.nodes[border.boundary] for border in found])
    asked = np.concatenate([border.outside for border in found])
    assert set(asked) == set(published)
    cut = problem.graph.num_edges - sum(graph.num_edges for graph, _ in problem.subgraphs())
    assert sum(border.links.nnz for border in found) == 2 * cut


def test_the_expanded_graph_has_all_neighbours_of_the_client_s_nodes_and_none_of_the_stand_ins():
    problem = random_problem()
    for (graph, _), border in zip(problem.subgraphs(), borders(problem), strict=True):
        wide, n = expand(graph, border.links), graph.num_nodes
        names = np.concatenate([border.nodes, border.outside])
        for v in range(wide.num_nodes):
            neighbours = wide.indices[wide.indptr[v] : wide.indptr[v + 1]]
            expected = problem.graph.adjacency[border.nodes[v]].indices if v < n else []
            assert sorted(names[neighbours]) == sorted(expected)
            assert (np.diff(neighbours) > 0).all()
        assert (wide.features[:n] != graph.features).nnz == 0
        assert wide.features[n:].nnz == 0
