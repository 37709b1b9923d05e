"""Train, validation and test nodes: drawn once over the whole graph, then handed down to the
clients.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.utils.errors import ConfigError, DataError
from feddep.utils.files import read_arrays, write_arrays
from feddep.utils.seeding import generator

REVISION = 1
"""Raised when the same options give another split."""
METHODS = ("random", "class_balanced", "within_clients", "masks")
"""The built-in methods; masks are those of a graph's files."""
ADDED: dict[str, Callable[[Graph, Mapping[str, float], int], Iterable[Any]]] = {}
"""Methods of plugins: from the graph, the shares of ``train``, ``val`` and ``test`` nodes and the
seed of the run to these three sets, as :meth:`Split.checked` takes them.
"""

PARTS = ("train", "val", "test")

_ROUNDING = 1e-9
"""How far a sum of fractions may be off by floating-point rounding."""


@dataclass(frozen=True, eq=False)
class Split:
    """Three disjoint sets of nodes.

    Attributes:
        train: ids of the nodes to train on, in ascending order; int64.
        val: ids of the nodes to choose on, likewise.
        test: ids of the nodes to report on, likewise.
    """

    train: np.ndarray
    val: np.ndarray
    test: np.ndarray

    @classmethod
    def of_masks(cls, masks: Mapping[str, np.ndarray], seed: int, graph: Graph) -> "Split":
        """The split that masks of the three sets say; of several a set, shape (n, k), those in
        column ``seed`` modulo k.

        Raises:
            DataError: if they are no masks of the graph (:meth:`checked`).
        """
        one = {
            part: mask if mask.ndim < 2 else mask[:, seed % mask.shape[1]]
            for part, mask in masks.items()
        }
        return cls(**one).checked(graph)

    def checked(self, graph: Graph) -> "Split":
        """The split of a graph, of sets that somebody wrote by hand.

        Each may be a list of ids in any order, or a mask, one bool a node; NumPy's, PyTorch's or
        Python's.

        Raises:
            DataError: if a set is neither, is empty, or names a node twice, or one that is not
                there or has no label, or two sets share a node.
        """
        found = {
            part: _ids(f"split.{part}", getattr(self, part), graph.num_nodes) for part in PARTS
        }
        for part, ids in found.items():
            if len(bare := ids[graph.labels[ids] < 0]):
                raise DataError(
                    f"split.{part} names {len(bare)} nodes without a label, such as {bare[0]}; "
                    "each needs one"
                )
        for one, other in combinations(PARTS, 2):
            if len(both := np.intersect1d(found[one], found[other])):
                raise DataError(
                    f"split.{one} and split.{other} share {len(both)} nodes, such as {both[0]}; "
                    "a node may be in one set"
                )
        return Split(**found)

    def labelled(self, share: float | None, seed: int) -> "Split":
        """The same split with fewer training nodes: only this share of all nodes has a label to
        train on.

        A smaller share's nodes are among those of a larger one.  Nodes that lose their label are in
        none of the sets.

        Args:
            share: number of training nodes to keep, as a share of the nodes of all three sets; None
                keeps all.
            seed: seed of the run; the draw is its stream "labelled".

        Raises:
            ConfigError: if there are not so many training nodes, or none would be left.
        """
        if share is None:
            return self
        kept = round(share * sum(len(part) for part in (self.train, self.val, self.test)))
        if not 0 < kept <= len(self.train):
            raise ConfigError(
                f"labelled is {share:g}, which means {kept} nodes; it must leave between 1 and "
                f"{len(self.train)}"
            )
        order = generator(seed, "labelled").permutation(self.train)
        return Split(np.sort(order[:kept]), self.val, self.test)

    def restrict(self, nodes: np.ndarray) -> "Split":
        """The split of ``graph.subgraph(nodes)``: id k stands for node ``nodes[k]`` of the graph
        that was split.
        """
        return Split(
            *(np.flatnonzero(np.isin(nodes, part)) for part in (self.train, self.val, self.test))
        )

    def save(self, path: str | Path, key: str = "") -> None:
        """Write the three sets as safetensors, with their content key if they have one."""
        write_arrays(path, {"train": self.train, "val": self.val, "test": self.test}, key)

    @classmethod
    def load(cls, path: str | Path, key: str | None = None) -> "Split":
        """Read a split that :meth:`save` wrote.

        Raises:
            DataError: if the file is missing, damaged, or has another key than is asked for.
        """
        return cls(**read_arrays(path, key))


def draw(
    graph: Graph,
    how: str,
    fractions: Mapping[str, float],
    seed: int,
    partition: Partition | None = None,
) -> Split:
    """The split of a graph's labelled nodes, ``random`` (:func:`random_split`), ``class_balanced``
    or ``within_clients``; or that of a plugin.
    """
    if how in ADDED:
        return Split(*ADDED[how](graph, fractions, seed)).checked(graph)
    if how == "within_clients":
        return within_clients_split(graph, partition, fractions, seed)
    labelled = np.flatnonzero(graph.labels >= 0)
    if how == "class_balanced":
        found = class_balanced_split(graph.labels[labelled], graph.num_classes, fractions, seed)
    else:
        found = random_split(len(labelled), fractions, seed)
    return Split(labelled[found.train], labelled[found.val], labelled[found.test])


def class_balanced_split(
    labels: np.ndarray, classes: int, fractions: Mapping[str, float], seed: int
) -> Split:
    """Equally many training nodes a class, as in FedDEP's published code, whose data loader is
    FederatedScope's.

    Of each class ⌊n · train / C⌋ nodes are trained on, or all that it has; of the others, in random
    order, the first ⌊n · val⌉ are validation nodes and all the rest test nodes.  A class with too
    few nodes is in neither of these: on Cora that is so of two classes, on CiteSeer of one.

    Args:
        labels: class of each node, int64, shape (n,).
        classes: number of classes C.
        fractions: shares of train and val; that of test is what is left.
        seed: of the stream "class-balanced split".

    Raises:
        ConfigError: if a set would have no node.
    """
    random, n = generator(seed, "class-balanced split"), len(labels)
    each = int(n * fractions["train"] / classes + _ROUNDING)
    train = np.concatenate(
        [random.permutation(np.flatnonzero(labels == c))[:each] for c in range(classes)]
    )
    rest = random.permutation(np.setdiff1d(np.arange(n), train))
    return _in_order("class_balanced", [train, *np.split(rest, [round(n * fractions["val"])])])


def within_clients_split(
    graph: Graph, partition: Partition | None, fractions: Mapping[str, float], seed: int
) -> Split:
    """Of each class at each client the same shares, as OpenFGL and FedTAD split.

    The k nodes of a class at a client, in random order, are cut at ⌊k · train⌋ and ⌊k · (train +
    val)⌋; nodes without a label are in no set.  Without a partition, one client has them all.

    Where clients overlap, nodes are split once for all of them, of each class of the whole graph
    the same shares, so that no client's training node is another's test node.  So does FED-PUB's
    code, but uniformly at random, not class by class.

    Args:
        graph: the graph.
        partition: who owns which node.
        fractions: shares of train and val; that of test is what is left.
        seed: of the stream "split within clients".

    Raises:
        ConfigError: if a set would have no node.
    """
    random = generator(seed, "split within clients")
    owner = (
        np.zeros(graph.num_nodes, dtype=np.int64)
        if partition is None or not partition.is_disjoint
        else partition.client
    )
    group = np.where(graph.labels >= 0, owner * graph.num_classes + graph.labels, -1)
    shares = np.cumsum([fractions["train"], fractions["val"]])
    parts: list[list[np.ndarray]] = [[], [], []]
    for each in np.unique(group[group >= 0]):
        nodes = random.permutation(np.flatnonzero(group == each))
        cut = np.split(nodes, np.floor(len(nodes) * shares + _ROUNDING).astype(np.int64))
        for part, found in zip(parts, cut, strict=True):
            part.append(found)
    return _in_order("within_clients", map(np.concatenate, parts))


def _in_order(how: str, parts: Iterable[np.ndarray]) -> Split:
    """The split of these nodes; none of its sets may be empty."""
    sets = list(map(np.sort, parts))
    if not all(map(len, sets)):
        sizes = ", ".join(str(len(part)) for part in sets)
        raise ConfigError(
            f"split is {how}, which leaves {sizes} nodes to train, validate and test on; each "
            "needs one"
        )
    return Split(*sets)


def random_split(n: int, fractions: Mapping[str, float], seed: int) -> Split:
    """Split the nodes 0 … n − 1 uniformly at random, by the stream "split" of the seed.

    A random order of the nodes is cut at ⌊n·train⌋, ⌊n·(train + val)⌋ and ⌊n·(train + val + test)⌋.
    So each set is less than one node away from its share, and no node is left over if the fractions
    sum to 1.

    Raises:
        ConfigError: if the fractions sum to more than 1, or a set would have no node.
    """
    shares = np.cumsum([fractions[part] for part in PARTS])
    if shares[-1] > 1 + _ROUNDING:
        raise ConfigError(
            f"split.train, split.val and split.test sum to {shares[-1]:g}; the sum must be at "
            "most 1"
        )
    ends = np.floor(n * (shares + _ROUNDING)).astype(np.int64)
    order = generator(seed, "split").permutation(n)
    return _in_order("random", np.split(order, ends)[:3])


def _ids(name: str, given: Any, nodes: int) -> np.ndarray:
    found = np.asarray(given)
    ids = np.flatnonzero(found) if found.dtype == bool and found.shape == (nodes,) else found
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        described = f"type {found.dtype} and shape {found.shape}"
        raise DataError(
            f"{name} has {described}; ids of nodes or one bool for each of {nodes} nodes are "
            "allowed"
        )
    if not len(ids):
        raise DataError(f"{name} is empty; each set needs a node")
    if ids.min() < 0 or ids.max() >= nodes:
        raise DataError(
            f"{name} names the node {ids.min() if ids.min() < 0 else ids.max()}; the graph has "
            f"nodes 0 to {nodes - 1}"
        )
    if len(unique := np.unique(ids)) < len(ids):
        raise DataError(
            f"{name} has {len(ids)} ids of {len(unique)} nodes; each node may be named once"
        )
    return unique.astype(np.int64)
