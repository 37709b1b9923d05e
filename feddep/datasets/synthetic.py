"""Synthetic graphs, for tests and for machines without data."""

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph
from feddep.utils.errors import ConfigError
from feddep.utils.seeding import generator

REVISION = 1
"""Raised when the same options give another graph."""


def planted_partition(
    nodes: int,
    classes: int,
    communities: int,
    features: int,
    degree_within: float,
    degree_between: float,
    words: int,
    signal: float,
    seed: int,
    isolated: float = 0.0,
    count_exponent: float | None = None,
) -> Graph:
    """A planted-partition graph (Condon and Karp, 2001) of labelled nodes with bags of words as
    features.

    Nodes are assigned at random to communities of equal size (up to one node), and communities in
    turn to classes.  Every pair of nodes is joined independently, with one probability within a
    community and another between communities.  A word of a node comes with probability ``signal``
    from the vocabulary of its class, an equal share of all words, else from the rest; the words of
    a node are distinct.  Each is a feature of value 1, or with ``count_exponent`` α the number of
    times that it occurs: a count with a heavy tail, at least k with probability k^−α, and ζ(α) on
    average.  Isolated nodes have a class at random and words like the others; what is said of
    communities and pairs does not concern them.

    Args:
        nodes: number of nodes.
        classes: number of classes.
        communities: number of communities, at least one a class.
        features: number of words in the vocabulary of all classes.
        degree_within: expected number of neighbours in a node's own community.
        degree_between: expected number of neighbours in other communities.
        words: number of words of a node.
        signal: share of a node's words that come from its class, in expectation; 0 to 1.
        seed: of all random draws.
        isolated: share of nodes, drawn at random, that have no neighbours; from 0 to below 1.
        count_exponent: exponent α of the words' counts, 1 to 100; the smaller, the heavier the
            tail.  If None, counts are 1.

    Raises:
        ConfigError: if a value is out of the range that others leave it; ranges of their own are
            those of :class:`feddep.config.models.Synthetic`.
    """
    _check("isolated", isolated, 0, 1 - 4 / nodes)
    linked = nodes - round(isolated * nodes)
    _check("classes", classes, 2, linked // 2)
    _check("communities", communities, classes, linked // 2)
    _check("features", features, classes, None)
    _check("words", words, 1, features // classes)
    size = linked // communities
    _check("degree_within", degree_within, 0, size - 1)
    _check("degree_between", degree_between, 0, linked - size - 1)

    community = generator(seed, "communities").permutation(np.arange(linked) % communities)
    random = generator(seed, "edges")
    between = _pairs(random, np.arange(linked), degree_between / (linked - linked / communities))
    groups = np.split(np.argsort(community, kind="stable"), np.cumsum(np.bincount(community))[:-1])
    within = [_pairs(random, group, degree_within / (len(group) - 1)) for group in groups]
    edges = np.concatenate([between[community[between[:, 0]] != community[between[:, 1]]], *within])
    random = generator(seed, "isolated")
    # Of the linked nodes in the whole graph.
    place = np.sort(random.choice(nodes, linked, replace=False))
    labels = random.integers(classes, size=nodes)
    labels[place] = community % classes
    bags = _bags_of_words(labels, classes, features, words, signal, seed)
    if count_exponent is not None:  # a Pareto distribution, rounded down
        bags.data = np.floor(1 + generator(seed, "counts").pareto(count_exponent, size=bags.nnz))
    return Graph.from_edges(place[edges], bags, labels, classes)


def _check(key: str, value: float, low: float, high: float | None) -> None:
    if not (low <= value and (high is None or value <= high)):
        allowed = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ConfigError(f"synthetic.{key} is {value}, allowed here is {allowed}")


def _pairs(random: np.random.Generator, nodes: np.ndarray, probability: float) -> np.ndarray:
    """Pairs of distinct nodes, each pair drawn independently with the same probability; shape (m,
    2).

    Cells of the whole square are drawn and those above the diagonal kept: the number of cells is
    binomial, and given their number every set of cells is equally likely, so each cell is there
    independently.
    """
    n = len(nodes)
    cells = random.choice(
        n * n, size=random.binomial(n * n, min(probability, 1.0)), replace=False, shuffle=False
    )
    first, second = np.divmod(cells, n)
    return np.column_stack([nodes[first], nodes[second]])[first < second]


def _bags_of_words(
    labels: np.ndarray, classes: int, features: int, words: int, signal: float, seed: int
) -> sp.csr_matrix:
    """A 0/1 matrix with ``words`` ones a row, shape (n, features); class c owns the c-th slice of
    the columns.
    """
    random = generator(seed, "words")
    share = features // classes
    columns = np.empty((len(labels), words), dtype=np.int64)
    for node, (label, typical) in enumerate(
        zip(labels, random.binomial(words, signal, size=len(labels)), strict=True)
    ):
        own = label * share + random.choice(share, typical, replace=False)
        # Columns of the rest, counted past the own.
        other = random.choice(features - share, words - typical, replace=False)
        columns[node] = np.concatenate([own, other + share * (other >= label * share)])
    rows = np.repeat(np.arange(len(labels)), words)
    return sp.csr_matrix(
        (np.ones(columns.size), (rows, columns.ravel())), shape=(len(labels), features)
    )
