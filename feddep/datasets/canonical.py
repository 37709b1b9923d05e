"""A node order that depends on a graph's content alone, so that every source of a dataset gives the
same bytes.

Nodes are coloured by a hash of their features, label and owner, and the colours are refined with
the neighbours' colours until the partition into colours is stable (Weisfeiler and Lehman, 1968).
Nodes that still share a colour are separated by individualisation and refinement (McKay, "Practical
graph isomorphism", 1981, section 2): give one of them a colour of its own, refine, and keep the
choice with the least certificate.  The nodes are then sorted by colour.

Colours are 64-bit hashes in wrapping integer arithmetic: they depend on no platform and no library
version.  The order is canonical unless two different neighbourhoods collide, which has a chance
below 1e-9 for 100 000 nodes.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from feddep.graph.graph import Graph

_COLUMN, _LABEL, _NEIGHBOUR, _INDIVIDUAL, _CLIENT = (
    np.uint64(k * 0x9E3779B97F4A7C15 % 2**64) for k in (1, 2, 3, 4, 5)
)


def canonical(graph: Graph) -> Graph:
    """The same graph with its nodes in canonical order."""
    return graph.subgraph(canonical_order(graph))


def canonical_order(graph: Graph) -> np.ndarray:
    """Nodes in canonical order; int64, shape (n,).

    Graphs that differ only in how their nodes are numbered are equal, to the byte, once their nodes
    are put in this order.
    """
    return _order(_refine(_content_colours(graph), graph.adjacency), graph.adjacency)


def _mix(values: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele et al., OOPSLA 2014): a bijection of 64-bit words that
    looks random.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _row_sums(entries: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Sum of each CSR row's entries modulo 2^64: a hash of the row as a multiset."""
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(entries, dtype=np.uint64)])
    return sums[indptr[1:]] - sums[indptr[:-1]]


def _content_colours(graph: Graph) -> np.ndarray:
    """A hash of each node's features, label and, where the data say it, owner; uint64, shape
    (n,).
    """
    features = graph.features
    columns = features.indices.astype(np.uint64)
    values = features.data.astype("<f4").view("<u4").astype(np.uint64)
    words = _row_sums(_mix(_mix(columns + _COLUMN) + values), features.indptr)
    colours = _mix(words + _mix(graph.labels.astype(np.uint64) + _LABEL))
    return (
        colours
        if graph.client is None
        else _mix(colours + _mix(graph.client.astype(np.uint64) + _CLIENT))
    )


def _refine(colours: np.ndarray, adjacency: sp.csr_matrix) -> np.ndarray:
    """Hash each node's colour with the multiset of its neighbours' colours until that splits no
    colour any more.
    """
    before, count = -1, len(np.unique(colours))
    while count != before:
        received = _row_sums(_mix(colours + _NEIGHBOUR)[adjacency.indices], adjacency.indptr)
        colours = _mix(_mix(colours) + received)
        before, count = count, len(np.unique(colours))
    return colours


def _order(colours: np.ndarray, adjacency: sp.csr_matrix) -> np.ndarray:
    """Nodes by colour, ties broken canonically; ``colours`` are stable under refinement.

    A node with a colour of its own is joined to all nodes of another colour or to none, so it
    breaks no tie: only the subgraph of tied nodes matters.
    """
    _, cell, size = np.unique(colours, return_inverse=True, return_counts=True)
    tied = np.flatnonzero(size[cell] > 1)
    rank = np.zeros(len(colours), dtype=np.int64)
    rank[tied] = _tie_breaks(colours[tied], adjacency[tied][:, tied])
    return np.lexsort((rank, colours))


def _tie_breaks(colours: np.ndarray, adjacency: sp.csr_matrix) -> np.ndarray:
    """A number for each node, by which nodes of one colour are to be sorted; int64, shape (n,).

    Connected components are independent: each is ordered by itself, then they are ordered by their
    certificates.
    """
    links = _sparse_links(colours, adjacency)
    _, component = connected_components(links, directed=False)
    groups = np.split(np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1])
    ordered = []
    for nodes in groups:
        # Where one node of a colour stands alone, all do, and they are interchangeable.
        if len(nodes) > 1:
            part, own = links[nodes][:, nodes], colours[nodes]
            order = _individualise(own, part)
            ordered.append((_certificate(own, part, order), nodes[order]))
    ordered.sort(key=lambda pair: pair[0])
    breaks = np.zeros(len(colours), dtype=np.int64)
    if ordered:
        nodes = np.concatenate([nodes for _, nodes in ordered])
        breaks[nodes] = np.arange(len(nodes))
    return breaks


def _sparse_links(colours: np.ndarray, adjacency: sp.csr_matrix) -> sp.csr_matrix:
    """Links among tied nodes that say the same as ``adjacency``, but are few: dense parts are
    complemented.

    Between two colours, the edges and the missing edges hold the same information.  Where more than
    half of the possible edges are there, the missing ones replace them, so that a clique or a
    complete bipartite part has no links at all.
    """
    _, cell, size = np.unique(colours, return_inverse=True, return_counts=True)
    edges = adjacency.tocoo()
    pairs, found = np.unique(cell[edges.row] * len(size) + cell[edges.col], return_counts=True)
    first, second = np.divmod(pairs, len(size))
    dense = 2 * found > size[first] * (size[second] - (first == second))
    nodes_of = np.split(np.argsort(cell, kind="stable"), np.cumsum(size)[:-1])
    links = adjacency
    for a, b in zip(first[dense], second[dense], strict=True):
        rows, columns = np.repeat(nodes_of[a], size[b]), np.tile(nodes_of[b], size[a])
        possible = rows != columns
        ones = np.ones(np.count_nonzero(possible), dtype=adjacency.dtype)
        links = abs(
            links
            - sp.csr_matrix((ones, (rows[possible], columns[possible])), shape=adjacency.shape)
        )
        links.eliminate_zeros()
    return links


def _individualise(colours: np.ndarray, links: sp.csr_matrix) -> np.ndarray:
    """Order the nodes of a connected graph: individualise each node of one colour in turn, keep the
    least certificate.
    """
    # For example, in a cycle of four nodes all have one colour.  Marking node 0 separates its
    # neighbours 1 and 3 from 2, and marking 1 as well separates all: an order.  Marking node 1
    # first gives an order with the same certificate.  The map between the two orders is then an
    # automorphism that takes 0 to 1, so both are in one orbit.  Nodes in the orbit of a node that
    # was tried are left out.
    distinct, size = np.unique(colours, return_counts=True)
    if len(distinct) == len(colours):
        return np.argsort(colours)
    target = distinct[size > 1][np.argmin(size[size > 1])]
    orders: dict[bytes, np.ndarray] = {}
    tried: list[int] = []
    orbit = np.arange(len(colours))  # nodes known to be equivalent share a number
    for node in np.flatnonzero(colours == target):
        if orbit[node] in orbit[tried]:
            continue
        marked = colours.copy()
        marked[[node]] = _mix(marked[[node]] + _INDIVIDUAL)
        order = _order(_refine(marked, links), links)
        equal = orders.setdefault(_certificate(colours, links, order), order)
        # Two orders with the same certificate are an automorphism.
        orbit = _merge(orbit, equal, order)
        tried.append(int(node))
    return orders[min(orders)]


def _merge(orbit: np.ndarray, nodes: np.ndarray, images: np.ndarray) -> np.ndarray:
    """Orbits after the automorphism that takes ``nodes`` to ``images`` became known."""
    ones = np.ones(len(orbit), dtype=np.int8)
    return connected_components(
        sp.coo_matrix((ones, (orbit[nodes], orbit[images])), shape=(len(orbit),) * 2)
    )[1][orbit]


def _certificate(colours: np.ndarray, links: sp.csr_matrix, order: np.ndarray) -> bytes:
    """A coloured graph with its nodes in ``order``, as bytes: equal for two graphs only if they are
    the same graph.
    """
    ordered = links[order][:, order].sorted_indices()
    parts = (
        colours[order].astype("<u8"),
        ordered.indptr.astype("<i8"),
        ordered.indices.astype("<i8"),
    )
    return b"".join(part.tobytes() for part in parts)
