"""Message-flow graphs against a slow reference, and the law of the neighbours drawn."""

from collections import Counter

import numpy as np
import scipy.sparse as sp
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from feddep.graph.blocks import Blocks, BlockSampler
from feddep.graph.graph import Graph
from graphs import graphs, neighbours, random_graph, star


def roots_of(graph: Graph, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.permutation(graph.num_nodes)[: rng.integers(1, graph.num_nodes + 1)]


def sampled(blocks: Blocks) -> dict[int, list[int]]:
    """The sampled neighbours of each node, by ids."""
    lists = np.split(blocks.nodes[blocks.indices], blocks.indptr[1:-1])
    return {int(node): each.tolist() for node, each in zip(blocks.nodes, lists, strict=False)}


@given(graphs(), st.integers(1, 9), st.integers(1, 3), st.integers(0, 2**16))
def test_d_distinct_neighbours_or_all_and_every_node_once(graph, degree, hops, seed):
    roots = roots_of(graph, seed)
    blocks = BlockSampler(graph.adjacency, degree).draw(roots, hops, np.random.default_rng(seed))
    assert blocks.nodes[: len(roots)].tolist() == roots.tolist()
    assert (
        len(set(blocks.nodes.tolist()))
        == len(blocks.nodes)
        == blocks.sizes[-1]
        == len(blocks.degrees)
    )
    lists = sampled(blocks)
    for node, each in lists.items():
        true = neighbours(graph, node)
        assert set(each) <= set(true)
        assert len(set(each)) == len(each) == min(len(true), degree)
    assert blocks.degrees.tolist() == np.minimum(graph.degrees[blocks.nodes], degree).tolist()
    reached = set(roots.tolist())
    for size in blocks.sizes:  # within one hop more: the neighbours of those within the hops so far
        assert set(blocks.nodes[:size].tolist()) == reached
        if size != blocks.sizes[-1]:
            reached = reached.union(*(lists[node] for node in reached))


@given(graphs(), st.integers(1, 3), st.integers(0, 2**16))
def test_layers_read_what_the_layer_before_has_computed(graph, hops, seed):
    blocks = BlockSampler(graph.adjacency, 2).draw(
        roots_of(graph, seed), hops, np.random.default_rng(seed)
    )
    for layer in range(1, hops + 1):
        indptr, indices, (rows, columns) = blocks.neighbours(layer)
        assert rows == blocks.sizes[hops - layer] == len(indptr) - 1
        assert columns == blocks.sizes[hops - layer + 1]
        assert len(indices) == indptr[-1]
        assert not len(indices) or indices.max() < columns


def test_a_draw_leaves_nothing_behind():
    graph = random_graph(30, 80)
    used, fresh = (BlockSampler(graph.adjacency, 3) for _ in range(2))
    used.draw(np.arange(12), 2, np.random.default_rng(0))
    first, second = (
        each.draw(np.array([5, 20]), 2, np.random.default_rng(1)) for each in (used, fresh)
    )
    assert sampled(first) == sampled(second)
    assert first.nodes.tolist() == second.nodes.tolist()


def test_every_subset_of_neighbours_is_equally_likely():
    sampler, rng = BlockSampler(star(5).adjacency, 2), np.random.default_rng(0)
    drawn = Counter(
        tuple(sorted(sampled(sampler.draw(np.array([0]), 1, rng))[0])) for _ in range(5000)
    )
    assert len(drawn) == 10
    assert scipy.stats.chisquare(list(drawn.values())).pvalue > 0.001


def test_neighbours_need_not_be_mutual():
    one_way = sp.csr_matrix(np.array([[0, 1], [0, 0]], dtype=np.float32))
    blocks = BlockSampler(one_way, 3).draw(np.array([1, 0]), 2, np.random.default_rng(0))
    assert sampled(blocks) == {1: [], 0: [1]}


def test_no_hops_and_no_edges():
    sampler = BlockSampler(star(3).adjacency, 2)
    blocks = sampler.draw(np.array([2, 1]), 0, np.random.default_rng(0))
    assert (blocks.nodes.tolist(), blocks.sizes, blocks.indices.tolist()) == ([2, 1], (2,), [])
    lonely = BlockSampler(star(0).adjacency, 2).draw(np.array([0]), 2, np.random.default_rng(0))
    assert (lonely.sizes, lonely.indptr.tolist(), lonely.degrees.tolist()) == (
        (1, 1, 1),
        [0, 0],
        [0],
    )
