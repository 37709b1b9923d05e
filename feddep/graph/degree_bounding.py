"""A graph of bounded degree, in which an edge more or less of the original moves only a few edges.

Each node puts its edges in an order that does not depend on the graph and keeps the first D of them
(Blocki, Blum, Datta and Sheffet 2013, "Differentially private data analysis of social networks via
restricted sensitivity").  Sampling D neighbours anew does not have this property, nor does going
through the edges and adding those whose ends still have room: there one edge can set off a chain.
docs/appendix/vesper_proofs.md has the proof, and tests try all small graphs.
"""

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph
from feddep.utils.seeding import derive_seed

KEEPING = ("both", "receiver")
"""Whose choice counts: an edge stays where both ends keep it, or messages along it reach each end
that keeps it.
"""


def edge_priorities(first: np.ndarray, second: np.ndarray, nodes: int, seed: int) -> np.ndarray:
    """The priority of node pairs in a random order that depends on the seed and on the two nodes'
    ids alone.

    Args:
        first, second: ends of the pairs, in any order; integers, shape (m,).
        nodes: number of nodes of the graph, which is public.
        seed: seed of the run.

    Returns:
        uint64, shape (m,): the pair (u, v) has the same as (v, u), whatever other pairs there are.
        Ties are as unlikely as two equal random numbers of 64 bits.
    """
    pair = np.minimum(first, second).astype(np.uint64) * np.uint64(nodes) + np.maximum(
        first, second
    ).astype(np.uint64)
    mixed = pair + np.uint64(derive_seed(seed, "degree bounding"))
    # SplitMix64 (Steele, Lea and Flood 2014).
    for shift, factor in (
        (30, 0xBF58476D1CE4E5B9),
        (27, 0x94D049BB133111EB),
    ):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def bounded_adjacency(graph: Graph, degree: int, seed: int, keep: str = "both") -> sp.csr_matrix:
    """The adjacency matrix after each node has kept at most D edges.

    Args:
        graph: the graph to bound.
        degree: the largest degree D, at least 1.
        seed: seed of the run; the same seed keeps the same edges of the same graph.
        keep: ``"both"``: an edge stays if it is among the first D of both its ends.  The result is
            symmetric, no row and no column has more than D entries, and taking an edge from the
            graph takes at most one edge from it and adds at most two. ``"receiver"``: row v holds
            the first D edges of v.  No row has more than D entries, a column may have any number;
            taking an edge from the graph changes the rows of its two ends alone, and in each
            replaces at most one entry.

    Returns:
        The 0/1 matrix with the neighbours whose messages node v receives in row v; float32 CSR with
        sorted indices, shape (n, n).
    """
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    priorities = edge_priorities(rows, graph.indices, graph.num_nodes, seed)
    order = np.lexsort((graph.indices, priorities, rows))
    ranks = np.empty(len(rows), dtype=np.int64)
    ranks[order] = np.arange(len(rows)) - graph.indptr[rows]
    kept = ranks < degree
    parts = np.ones(int(kept.sum()), dtype=np.float32), (rows[kept], graph.indices[kept])
    lists = sp.csr_matrix(parts, shape=(graph.num_nodes, graph.num_nodes))
    result = lists.multiply(lists.T).tocsr() if keep == "both" else lists
    result.sort_indices()
    return result
