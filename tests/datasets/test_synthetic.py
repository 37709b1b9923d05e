"""Planted partitions have the size, the structure and the signal that was asked for."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feddep.datasets.graph_statistics import statistics
from feddep.datasets.synthetic import planted_partition
from feddep.utils.errors import ConfigError

TINY: dict[str, Any] = {
    **{
        "nodes": 240,
        "classes": 4,
        "communities": 12,
        "features": 64,
        "degree_within": 6.0,
        "degree_between": 1.0,
    },
    **{"words": 8, "signal": 0.5, "seed": 0},
}


def test_the_graphs_are_fixed() -> None:
    """Results on synthetic graphs are kept by the options alone: whoever changes what these give
    raises the revision.
    """
    assert (
        planted_partition(**TINY).fingerprint
        == "c8d0689ff8b186b78ed2607235ec316cdb37a200b59408cbbeefe6332f460edf"
    )
    counts = planted_partition(**TINY, count_exponent=1.5)
    assert counts.fingerprint == "a59f46053114a9e048ecabf7347d79bad0310a723d5f6c67bb78ec26d1c36b95"


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_sizes_are_as_asked(data: st.DataObject) -> None:
    nodes = data.draw(st.integers(4, 60))
    classes = data.draw(st.integers(2, min(4, nodes // 2)))
    communities = data.draw(st.integers(classes, nodes // 2))
    features = data.draw(st.integers(classes, 20))
    words = data.draw(st.integers(1, features // classes))
    size = nodes // communities
    within = data.draw(st.floats(0, size - 1))
    between = data.draw(st.floats(0, nodes - size - 1))
    signal = data.draw(st.floats(0, 1))
    graph = planted_partition(
        nodes, classes, communities, features, within, between, words, signal, seed=3
    )
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (nodes, features, classes)
    assert set(graph.labels) == set(range(classes))
    assert np.diff(graph.features.indptr).tolist() == [words] * nodes
    assert set(graph.features.data) == {1.0}


def test_degrees_and_words_are_as_expected() -> None:
    graph = planted_partition(**TINY | {"nodes": 3000, "communities": 60})
    described = statistics(graph)
    assert described["mean_degree"] == pytest.approx(7.0, abs=0.2)
    # 14 of 59 other blocks share the class.
    assert described["edge_homophily"] == pytest.approx((6 + 1 * 14 / 59) / 7, abs=0.02)
    rows = np.repeat(np.arange(graph.num_nodes), np.diff(graph.features.indptr))
    own = graph.features.indices // 16 == graph.labels[rows]
    assert own.mean() == pytest.approx(0.5, abs=0.02)


def test_a_share_of_the_nodes_may_be_isolated() -> None:
    """The graph of docs/guide/data.md for trials of scale, at a hundredth of its nodes."""
    sizes = {"nodes": 11325, "classes": 2, "communities": 10, "features": 155, "words": 20}
    graph = planted_partition(
        **TINY | sizes | {"degree_within": 6.5, "degree_between": 2.14, "isolated": 0.5}
    )
    linked = graph.degrees > 0
    assert 5650 <= linked.sum() <= 11325 - 5662  # a few of the others draw no neighbour either
    assert graph.degrees[linked].mean() == pytest.approx(8.64, abs=0.2)
    # Isolated nodes are anywhere.
    assert abs(np.flatnonzero(linked).mean() / graph.num_nodes - 0.5) < 0.02
    assert [graph.labels[part].mean() for part in (linked, ~linked)] == pytest.approx(
        [0.5, 0.5], abs=0.03
    )
    assert set(np.diff(graph.features.indptr)) == {20}


def test_counts_have_a_heavy_tail() -> None:
    words, counts = planted_partition(**TINY), planted_partition(**TINY | {"count_exponent": 1.5})
    assert np.array_equal(counts.features.indices, words.features.indices)  # the same words occur
    many = planted_partition(**TINY | {"nodes": 4000, "count_exponent": 1.5}).features.data
    assert len(many) == 32000
    assert np.array_equal(many, many.round())
    assert [(many >= k).mean() for k in (1, 2, 4, 25)] == pytest.approx(
        [1, 2**-1.5, 1 / 8, 1 / 125], rel=0.1
    )
    assert many.max() > 200  # 11 of 32000 in expectation, where a Poisson distribution has none
    light = planted_partition(**TINY | {"nodes": 4000, "count_exponent": 3.0}).features.data
    assert light.mean() == pytest.approx(1.2021, abs=0.02)  # ζ(3)


@pytest.mark.parametrize(
    "change",
    [
        *({"communities": 3}, {"communities": 121}, {"features": 3}, {"words": 17}),
        *({"degree_within": 19.5}, {"degree_between": -1}, {"isolated": 1.0}, {"isolated": 0.9}),
    ],
)
def test_values_out_of_range(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        planted_partition(**TINY | change)
