"""Hidden nodes, and what the others miss, node by node."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep.graph.graph import Graph
from feddep.graph.impairing import impair
from feddep.graph.split import Split
from graphs import graphs, neighbours, random_graph


def split_of(graph: Graph, seed: int) -> Split:
    part = np.random.default_rng(seed).integers(0, 3, graph.num_nodes)
    return Split(*(np.flatnonzero(part == each) for each in range(3)))


@given(
    graphs(max_nodes=12),
    st.floats(0, 1),
    st.sampled_from(["validation", "all"]),
    st.integers(0, 2**16),
)
def test_what_is_missing_is_what_was_there(graph, share, hidden_from, seed):
    split = split_of(graph, seed)
    impaired = impair(graph, split, share, hidden_from, np.random.default_rng(seed))
    hidden, kept = set(impaired.hidden.tolist()), impaired.kept.tolist()

    candidates = split.val if hidden_from == "validation" else np.arange(graph.num_nodes)
    assert hidden <= set(candidates.tolist())
    assert len(hidden) == round(share * len(candidates))
    assert kept == [v for v in range(graph.num_nodes) if v not in hidden]

    pairs = []
    for k, v in enumerate(kept):
        gone = [u for u in neighbours(graph, v) if u in hidden]
        assert impaired.missing[k] == len(gone)
        pairs += [[k, u] for u in gone]
        assert [kept[i] for i in neighbours(impaired.graph, k)] == [
            u for u in neighbours(graph, v) if u not in hidden
        ]
    assert impaired.pairs.tolist() == pairs
    assert impaired.graph.labels.tolist() == graph.labels[kept].tolist()
    assert (impaired.graph.features != graph.features[kept]).nnz == 0


@pytest.mark.parametrize("hidden_from", ["validation", "all"])
def test_hidden_nodes_follow_their_generator_and_every_candidate_has_its_chance(hidden_from):
    graph = random_graph(20, 40)
    split = split_of(graph, 1)
    drawn = [
        impair(graph, split, 0.5, hidden_from, np.random.default_rng(seed)).hidden
        for seed in [*range(60), 0]
    ]
    assert np.array_equal(drawn[0], drawn[-1])
    candidates = split.val if hidden_from == "validation" else np.arange(20)
    assert set(np.concatenate(drawn)) == set(candidates)
