"""What the guarantee comes to on graphs: held against the enumerated laws of each node's own list."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling_laws import enumerated_delta, multisets

from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.sampling import sample_trees
from feddep.privacy.accountant import PrivacyError, SamplingParameters, published_guarantee
from feddep.privacy.sampling_guarantees import SamplingGuarantee, expected_samplings, sampling_guarantees
from graphs import graphs, random_graph, star


def whole(graph: Graph, parameters: SamplingParameters) -> SamplingGuarantee:
    (found,) = sampling_guarantees(graph, None, parameters)
    return found


def ring(nodes: int) -> Graph:
    edges = np.column_stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes])
    return Graph.from_edges(edges, np.eye(nodes), np.zeros(nodes), 1)


@given(graphs(max_nodes=6), st.integers(1, 3))
def test_the_worst_node_is_found(graph, fanout):
    stranger, worst, lost = graph.num_nodes, [], []
    for node in range(graph.num_nodes):
        own = graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()
        law = multisets(own, fanout)
        loss = [enumerated_delta(law, multisets([u for u in own if u != gone], fanout), Fraction(1)) for gone in own]
        gain = enumerated_delta(law, multisets([*own, stranger], fanout), Fraction(1))
        worst.append(float(max([*loss, gain])))
        lost += map(float, loss)
    found = whole(graph, SamplingParameters(fanout))
    assert found.one.delta == pytest.approx(max(worst), abs=1e-12)
    assert found.all == found.one
    assert found.mean_delta == pytest.approx(np.mean(lost) if lost else 0, abs=1e-12)


@given(graphs(), st.integers(1, 4))
def test_degrees_are_counted(graph, fanout):
    found = whole(graph, SamplingParameters(fanout, layers=2))
    assert found.nodes == graph.num_nodes
    assert found.least_degree == graph.degrees.min()
    assert found.mean_degree == pytest.approx(graph.degrees.mean())
    assert found.isolated == (graph.degrees == 0).sum()
    shares = [found.share_below(degree) for degree in range(graph.degrees.max() + 2)]
    assert shares == pytest.approx([np.mean(graph.degrees < degree) for degree in range(graph.degrees.max() + 2)])
    assert found.share_contradicted() == (0 if fanout < 3 else pytest.approx(np.isin(graph.degrees, [fanout, fanout + 1]).mean()))
    assert (found.published is None) == (found.isolated > 0)
    json.dumps(found.as_dict(), allow_nan=False)


def test_the_theorem_is_taken_at_the_least_degree_of_each_client():
    graph, parameters = star(4), SamplingParameters(2, layers=2, epochs=3, rate=0.5, slack=1e-5)
    first, second = sampling_guarantees(graph, Partition(np.array([0, 0, 0, 1, 1]), 2), parameters)
    assert (first.client, first.nodes, first.least_degree, first.published) == (0, 3, 1, published_guarantee(1, parameters))
    assert (second.client, second.nodes, second.isolated, second.published) == (1, 2, 2, None)


@pytest.mark.parametrize(
    ("graph", "parameters", "remark"),
    [
        (star(0), SamplingParameters(5), "the graph: 1 of 1 nodes are isolated; the theorem has no ε for them"),
        (star(3), SamplingParameters(5), "the graph: 3 of 4 nodes have one neighbour, which every sampling shows: δ is 1"),
        (
            ring(9),
            SamplingParameters(1, layers=2, epochs=50),
            "the graph: after 100 samplings an edge may be known with probability 0.99",
        ),
        (ring(9), SamplingParameters(40), "the graph: after one sampling an edge may be known with probability 0.99"),
    ],
)
def test_a_vacuous_guarantee_is_called_so(graph, parameters, remark):
    text = whole(graph, parameters).remark()
    assert text is not None
    assert text.startswith(remark)
    assert "vacuous" in text


def test_a_guarantee_that_says_something_is_not_called_vacuous():
    assert whole(ring(9), SamplingParameters(1)).remark() is None


def test_two_nodes_read_each_others_lists():
    # Each tree of two hops reads its root's list twice, and the other's at each of the d places drawn in the first.
    assert expected_samplings(star(1), 5, 2).tolist() == [7, 7]


@pytest.mark.parametrize(("fanout", "layers"), [(1, 1), (2, 2), (2, 3), (4, 2)])
def test_the_real_sampler_reads_lists_as_often_as_expected(fanout, layers):
    graph, epochs = random_graph(12, 10, seed=4), 4_000
    assert (graph.degrees == 0).any()
    roots = np.tile(np.arange(12), epochs)
    trees = sample_trees(graph, roots, (fanout,) * layers, np.random.default_rng(1)).nodes
    read = np.zeros((epochs, 12))
    for hop in range(layers):
        places = trees[:, : (1 + fanout) ** hop].reshape(epochs, -1)
        for node in range(12):
            read[:, node] += (places == node).sum(axis=1)
    expected = expected_samplings(graph, fanout, layers)
    error = read.std(axis=0) / np.sqrt(epochs)
    assert (np.abs(read.mean(axis=0) - expected) <= 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_without_isolated_nodes_every_place_is_read(layers):
    graph = ring(7)
    assert expected_samplings(graph, 3, layers).mean() == pytest.approx(sum(4**hop for hop in range(layers)))


def test_a_partition_of_another_graph_is_refused():
    with pytest.raises(PrivacyError, match="divides 3 nodes and the graph has 5"):
        sampling_guarantees(star(4), Partition(np.array([0, 0, 1]), 2), SamplingParameters(2))


def test_a_graph_without_nodes_is_refused():
    with pytest.raises(PrivacyError, match="no nodes"):
        sampling_guarantees(star(3).subgraph(np.array([], dtype=np.int64)), None, SamplingParameters(2))
