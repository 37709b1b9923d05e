"""How likely one edge changes the tree sampled at a training node, and how many trees of a batch it
changes.

Neighbouring datasets are a graph and the same one without its edge {u, v}.  By a coupling of their
trees, drawn list by list, the total variation distance of the laws of a root's tree is at most 1 −
S_L, with

    S_0(w) = 1,    S_l(w) = S_{l−1}(w) · F_w(S_{l−1}),    F_w(s) = Σ_o min(P_w(o), Q_w(o)) Π_{c ∈ o}
    s(c),

where P_w and Q_w are the laws of a draw o from the list of w in either graph.  The bound is the
distance itself for L = 1, and for more hops unless exactly one end has d + 1 neighbours.
docs/appendix/privacy_proofs.md has the proof.
"""

import math
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph
from feddep.privacy.accountant import require_count
from feddep.privacy.profile import exact_guarantee

_MOST_AT_A_TIME = 4_000_000
"""Most numbers in memory at a time, some 100 MB with all copies."""

_NEVER = 1e-40
"""Sums less likely than this are merged with the largest one."""


def tree_changes(
    graph: Graph, roots: np.ndarray, hops: int, fanout: int, stand_ins: np.ndarray | None = None
) -> sp.csr_array:
    """For each edge and each root, the bound 1 − S_L on the probability that the edge changes the
    root's tree.

    Args:
        graph: the graph, with the edges.
        roots: the nodes whose trees are sampled, each once.
        hops: number of hops L of the trees.
        fanout: number of neighbours d that are drawn from a list.
        stand_ins: how many entries each node's list has besides its neighbours, which have no lists
            themselves (:func:`feddep.methods.shared.border.expand`); int64, shape (n,); none by
            default.

    Returns:
        float64, shape (|E|, number of roots), edges in the order of :meth:`Graph.edges`.  What is
        stored are the roots within L − 1 hops of either end.
    """
    require_count("number of hops L", hops)
    require_count("fan-out d", fanout)
    edges = graph.edges()
    lengths = graph.degrees if stand_ins is None else graph.degrees + stand_ins
    changed = [
        _changes(graph, lengths, part, hops, fanout)[:, roots]
        for part in _parts(graph, edges, hops, fanout)
    ]
    return sp.csr_array(sp.vstack([sp.csr_array((0, len(roots))), *changed], format="csr"))


def most_changed(changes: sp.csr_array, rate: float) -> np.ndarray:
    """The least law, in stochastic order, above the number of trees in a batch that each edge
    changes.

    A root whose trees differ with probability ρ counts with probability qρ / (1 − q + qρ),
    independently of the others: that it is sampled with unequal trees, given that it is not sampled
    with equal ones.

    Args:
        changes: ρ of each edge and root, as :func:`tree_changes` gives it.
        rate: probability q that a root is in a batch.

    Returns:
        The probability of j = 0 … k changed trees, where k is the most roots of an edge; float64,
        shape (k + 1,).
    """
    roots = np.diff(changes.indptr)
    most = int(roots.max(initial=0))
    if rate == 0 or most == 0:
        return np.eye(1, most + 1)[0]
    unequal = rate * changes.data
    rates = sp.csr_array(
        (unequal / (1 - rate + unequal), changes.indices, changes.indptr), shape=changes.shape
    )
    end = min(most, _practical_maximum(float(rates.sum(axis=1).max())))
    at_least = np.zeros(end + 1)
    for rows in np.array_split(np.argsort(roots), -(-len(roots) * (end + 1) // _MOST_AT_A_TIME)):
        laws = _poisson_binomial(rates[rows], end)
        at_least = np.maximum(at_least, laws[:, ::-1].cumsum(axis=1)[:, ::-1].max(axis=0))
    law = np.zeros(most + 1)
    law[:end] = -np.diff(at_least)
    law[most] = at_least[end]  # negligible sums count as all k
    return law


def _parts(graph: Graph, edges: np.ndarray, hops: int, fanout: int) -> Iterator[np.ndarray]:
    """The edges in parts whose trees have at most so many paths."""
    with_self_loops = graph.adjacency.astype(np.float64) + sp.eye_array(
        graph.num_nodes, format="csr"
    )
    paths = np.ones(graph.num_nodes)
    for _ in range(hops - 1):
        paths = with_self_loops @ paths
    work = np.cumsum(paths[edges].sum(axis=1)) * (fanout + 1)
    starts = np.flatnonzero(np.diff(work // _MOST_AT_A_TIME)) + 1
    yield from np.split(edges, starts)


def _changes(
    graph: Graph, lengths: np.ndarray, edges: np.ndarray, hops: int, fanout: int
) -> sp.csr_array:
    """1 − S_L of some edges at all nodes, shape (edges, n); stored for the nodes up to L − 1 hops
    from an edge.

    A pair of edge e and node w is encoded as one number e·n + w.
    """
    # For example, the path 0 – 1 – 2 without its edge e = {0, 1}, L = 2 and d = 1.  Hop 1: an end
    # draws the same from either list with probability 1 − δ: none at 0, whose list loses its only
    # entry, and 1/2 at 1, which keeps one of two entries.  So S_1 = (0, 1/2, 1).  Hop 2: the reader
    # of 1 that is no end of e is 2, whose only draw is 1: S_2(2) = S_1(2) · S_1(1) = 1/2.
    n = graph.num_nodes
    first = np.arange(len(edges)) * n
    ends = np.concatenate([first + edges[:, 0], first + edges[:, 1]])
    in_order = np.argsort(ends)
    ends, others = ends[in_order], np.roll(edges, 1, axis=1).T.ravel()[in_order]
    sizes, size_of = np.unique(lengths[ends % n], return_inverse=True)
    same_draw = np.array(
        [math.exp(exact_guarantee(int(size) - 1, fanout, ordered=True).log_rest) for size in sizes]
    )[size_of]  # 1 − δ

    places, same = ends[:0], np.empty(0)  # S_l where it is not 1
    for _ in range(hops):
        # The readers of each place c: all nodes with c in their list, except along the edge itself.
        counts = graph.degrees[places % n]
        entries = np.repeat(
            graph.indptr[places % n] - np.cumsum(counts) + counts, counts
        ) + np.arange(counts.sum())
        readers = np.repeat(places - places % n, counts) + graph.indices[entries]
        values = np.repeat(same, counts)
        across = _positions(ends, readers)
        common = (across < 0) | (others[across] != np.repeat(places % n, counts))
        sorting = np.argsort(readers[common], kind="stable")
        readers, starts = np.unique(readers[common][sorting], return_index=True)
        is_end = _positions(ends, readers) >= 0
        drawn = _mean_products(
            values[common][sorting], starts, lengths[readers % n] - is_end, is_end, fanout
        )

        reached = np.union1d(np.union1d(ends, readers), places)
        product = np.ones(len(reached))
        for where, factor in ((places, same), (readers, drawn), (ends, same_draw)):
            product[np.searchsorted(reached, where)] *= factor
        places, same = reached, product
    return sp.csr_array((1 - same, (places // n, places % n)), shape=(len(edges), n))


def _positions(ordered: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Where each of ``values`` is in an ascending array; −1 where it is not."""
    found = np.searchsorted(ordered, values).clip(max=len(ordered) - 1)
    return np.where(ordered[found] == values, found, -1)


def _mean_products(
    values: np.ndarray, starts: np.ndarray, lengths: np.ndarray, is_end: np.ndarray, fanout: int
) -> np.ndarray:
    """For each list the mean, over what is drawn from it, of the product of s; shape (lists,).

    Args:
        values: s of the entries for which it is not 1, list by list.
        starts: where each list starts in ``values``.
        lengths: number of all entries that a list has in both graphs, n.
        is_end: whether the list is that of u or v, and has another entry in one of the graphs.
        fanout: number of entries d that are drawn.
    """
    counts = np.diff(starts, append=len(values))
    missing = np.add.reduceat(1 - values, starts) if len(starts) else np.empty(0)
    means = (1 - missing / lengths).clip(min=0) ** fanout
    without = np.flatnonzero((lengths > fanout) | (is_end & (lengths == fanout)))

    # Mean over all j-subsets of the first m entries, for j = 0 … d: m grows from the entries with s
    # = 1, for which it is 1.
    chosen = np.arange(1, fanout + 1)
    of_subsets = np.ones((len(without), fanout + 1))
    for entry in range(int(counts[without].max(initial=0))):
        left = np.flatnonzero(counts[without] > entry)
        lists = without[left]
        size = (lengths[lists] - counts[lists] + entry + 1)[:, None]
        # The entry is among the j chosen ones with probability j / m.  (What is here for j > m is
        # not used.)
        share = np.minimum(chosen / size, 1)
        with_entry = values[starts[lists] + entry][:, None] * of_subsets[left, :-1]
        of_subsets[left, 1:] = (1 - share) * of_subsets[left, 1:] + share * with_entry
    means[without] = of_subsets[:, -1]
    return means


def _poisson_binomial(rates: sp.csr_array, end: int) -> np.ndarray:
    """The law of the sum of independent Bernoulli variables, for each row of rates; sums from
    ``end`` on are merged.

    Returns:
        float64, shape (rows, end + 1).
    """
    counts = np.diff(rates.indptr)
    laws = np.zeros((len(counts), end + 1))
    laws[:, 0] = 1
    for place in range(int(counts.max(initial=0))):
        rows = np.flatnonzero(counts > place)
        rate = rates.data[rates.indptr[rows] + place][:, None]
        before = laws[rows]
        after = (1 - rate) * before
        after[:, 1:] += rate * before[:, :-1]
        after[:, -1:] += rate * before[:, -1:]
        laws[rows] = after
    return laws


def _practical_maximum(mean: float) -> int:
    """A number that a sum of independent Bernoulli variables of no larger mean reaches with
    negligible probability (Chernoff).
    """
    reached = math.ceil(mean) + 1
    while reached * math.log(reached / mean) - reached + mean < -math.log(_NEVER):
        reached += 1
    return reached
