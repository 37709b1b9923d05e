"""Impairing: a client hides some of its own nodes to learn from them what missing neighbours look
like.

FedSage, Section 3.4, and FedDEP, Section 3.1: the generator sees the impaired subgraph Ḡ_i and is
told how many of each node's neighbours are hidden, n_v, and which, N̄_i(v).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from feddep.graph.graph import Graph
from feddep.graph.split import Split

HiddenFrom = Literal["validation", "all"]
"""``validation``: only validation nodes may be hidden (authors' code), so that no training label is
lost; ``all``: any node.
"""


@dataclass(frozen=True, eq=False)
class Impaired:
    """An impaired subgraph and what is missing from it.

    Attributes:
        graph: the subgraph Ḡ_i that the remaining nodes V̄_i induce.
        kept: ids of the remaining nodes in the whole subgraph, ascending; node k of ``graph`` is
            ``kept[k]``.
        hidden: ids of the hidden nodes in the whole subgraph, ascending.
        missing: number n_v of hidden neighbours of each remaining node, int64, shape (|V̄_i|,).
        pairs: (v, u) for each hidden neighbour u of each remaining node v: v in ``graph``, u in the
            whole subgraph; int64, shape (Σ n_v, 2), ascending.
    """

    graph: Graph
    kept: np.ndarray
    hidden: np.ndarray
    missing: np.ndarray
    pairs: np.ndarray


def impair(
    graph: Graph, split: Split, share: float, hidden_from: HiddenFrom, rng: np.random.Generator
) -> Impaired:
    """Hide ⌊share · number of candidates⌉ nodes of G_i, drawn uniformly without replacement from
    those of ``hidden_from``.
    """
    candidates = split.val if hidden_from == "validation" else np.arange(graph.num_nodes)
    hidden = np.sort(rng.permutation(candidates)[: round(share * len(candidates))])
    kept = np.setdiff1d(np.arange(graph.num_nodes), hidden, assume_unique=True)
    lost = graph.adjacency[kept][:, hidden].tocoo()
    pairs = np.column_stack([lost.row, hidden[lost.col]]).astype(np.int64)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    missing = np.bincount(pairs[:, 0], minlength=len(kept))
    return Impaired(graph.subgraph(kept), kept, hidden, missing, pairs)
