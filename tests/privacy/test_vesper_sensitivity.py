"""Sensitivities of VESPER's layers against a search over small graphs and random weights."""

import dataclasses
import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from feddep.graph.degree_bounding import bounded_adjacency
from feddep.privacy.accountant import PrivacyError
from feddep.privacy.vesper_sensitivity import (
    BOUNDINGS,
    Correction,
    VerticalTraining,
    changed_outputs,
    eta,
    geometric_sum,
    layer_squares,
    published_roots,
    published_sensitivities,
    reading_roots,
)
from message_changes import (
    adjacency,
    bounded_pairs,
    featureless,
    gcn,
    gin,
    small_graphs,
    worst_square,
)


def training(**changes: Any) -> VerticalTraining:
    return VerticalTraining(
        **{"nodes": 1000, "batch": 10, "steps": 20, "layers": 2, "degree": 5, **changes}
    )


def edges_removed(nodes):
    """Every graph on so many nodes, and the same without one of its edges."""
    for edges in small_graphs(nodes):
        for edge in edges:
            yield edges, [other for other in edges if other != edge], edge


def test_the_sum_changes_by_root_two():
    """Proposition 1, for weights of norm 1: over all graphs of up to 4 nodes, and attained."""
    found = {
        worst_square(gin(adjacency(n, a)) - gin(adjacency(n, b)), tries=1)
        for n in (2, 3, 4)
        for a, b, _ in edges_removed(n)
    }
    assert max(found) == pytest.approx(2)
    assert (
        published_sensitivities(training())
        == (math.sqrt(2),) * 2
        == published_sensitivities(training(aggregation="gap"))
    )


def gcn_square(m: int, d: np.ndarray) -> np.ndarray:
    """A bound on the squared change of GCN if both ends have d ≥ m neighbours, and all others at
    least m.

    The rows of the ends, as in the proof of Proposition 2, and those of their other neighbours,
    which it leaves out: their weight of the end grows as its degree falls, and one node may be a
    neighbour of both.
    """
    grown = 1 / np.sqrt(d) - 1 / np.sqrt(d + 1)
    end = 1 / (d * (d + 1)) + 1 / np.sqrt((d + 1) * (m + 1)) + (d - 1) / math.sqrt(m + 1) * grown
    others = 2 * (d - 1) / (m + 1) * grown**2
    return 2 * (end**2 + others)


def test_gcn_changes_by_no_more_than_eta():
    """Proposition 2 holds, though its proof forgets the rows of the neighbours: its slack makes up
    for them.
    """
    for m in range(2, 400):
        assert gcn_square(m, np.arange(m, 40 * m + 100)).max() <= eta(m) ** 2
    dense = [(a, b) for a, b, _ in edges_removed(5) if adjacency(5, a).sum(1).min() >= 2]
    found = [
        worst_square(gcn(adjacency(5, a)) - gcn(adjacency(5, b)), tries=1)
        for a, b in dense[:: len(dense) // 150]
    ]
    assert 0.5 * eta(2) ** 2 < max(found) <= eta(2) ** 2
    changed = np.abs(gcn(adjacency(5, dense[0][0])) - gcn(adjacency(5, dense[0][1]))).sum(1) > 0
    assert changed.sum() > 2
    assert published_sensitivities(training(aggregation="gcn", least_degree=4)) == (eta(4),) * 2


def aggregated(a: np.ndarray, layers: int, rows: np.ndarray) -> np.ndarray:
    """VFGNN without noise: several layers of sums, normalised at the end."""
    rows = np.linalg.matrix_power(gin(a), layers) @ rows
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)


@pytest.mark.parametrize(("layers", "degree"), [(1, 3), (2, 2), (2, 3), (3, 2)])
def test_vfgnn_changes_no_more_rows_than_counted(layers: int, degree: int):
    """Proposition 3, by random graphs."""
    rng = np.random.default_rng(layers)
    most = 0
    (bound,) = published_sensitivities(
        training(aggregation="vfgnn", layers=layers, degree=degree, correction=FROZEN)
    )
    for _ in range(60):
        nodes, edges = 14, []
        for u, v in rng.permutation(list(itertools.combinations(range(nodes), 2))):
            if all(sum(end in edge for edge in edges) < degree for end in (u, v)):
                edges.append((int(u), int(v)))
        rows = (
            rng.choice([-1.0, 1.0], size=(nodes, 1))
            if rng.random() < 0.5
            else rng.normal(size=(nodes, 3))
        )
        lost = int(rng.integers(len(edges)))
        pair = (edges, edges[:lost] + edges[lost + 1 :])
        with_edge, without = (aggregated(adjacency(nodes, each), layers, rows) for each in pair)
        change = np.linalg.norm(with_edge - without, axis=1)
        most = max(most, int((change > 1e-9).sum()))
        assert np.linalg.norm(change) <= bound
    assert most == 2 * geometric_sum(degree - 1, layers) <= published_roots(degree, layers)
    assert bound**2 == pytest.approx(4 * published_roots(degree, layers))


@pytest.mark.parametrize(("degree", "layers"), [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2)])
def test_no_more_rows_change_by_weights_of_gcn_than_counted(degree: int, layers: int):
    """A row of VFGNN changes where one of the L-th power of the weights does."""
    most = 0
    for pair in bounded_pairs(18, degree, 0.1, 400):
        one, other = (np.linalg.matrix_power(gcn(each), layers) for each in pair)
        most = max(most, int((np.abs(one - other) > 1e-12).any(1).sum()))
    of_gcn = training(aggregation="vfgnn_gcn", layers=layers, degree=degree, correction=FROZEN)
    assert 0.6 * changed_outputs(of_gcn) <= most <= changed_outputs(of_gcn)
    assert changed_outputs(of_gcn) == 2 * (degree + 1) or layers > 1
    assert published_sensitivities(of_gcn) == published_sensitivities(
        dataclasses.replace(of_gcn, aggregation="vfgnn")
    )


FROZEN = Correction(weights="frozen")


@cache
def bounded(keep: str, degree: int, edges: tuple[tuple[int, int], ...]) -> np.ndarray:
    """A graph of 5 nodes, bounded."""
    return bounded_adjacency(featureless(5, list(edges)), degree, 3, keep).toarray()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keep", "degree"), [("receiver", 1), ("receiver", 2), ("both", 1), ("both", 2)]
)
def test_the_corrected_sensitivities_are_those_of_all_small_graphs(keep: str, degree: int):
    """An end that loses a neighbour may take up another: all graphs of 5 nodes, with rows of any
    sign and of none below 0.
    """
    change = BOUNDINGS[keep]
    seen, rows = set(), set()
    for with_edge, without, _ in edges_removed(5):
        both = [bounded(keep, degree, tuple(each)) for each in (with_edge, without)]
        difference = both[0] - both[1]
        changed = np.abs(difference).sum(1) > 0
        order = np.argsort(changed, kind="stable")
        seen.add(difference[changed][:, order].astype(int).tobytes() + bytes([int(changed.sum())]))
        rows.add(int(changed.sum()))
    squares = []
    for each in seen:
        matrix = np.frombuffer(each[:-1], dtype=int).reshape(-1, 5).astype(float)
        if len(matrix):
            squares.append(
                (worst_square(matrix, tries=2), worst_square(matrix, nonnegative=True, tries=2))
            )
    signed, nonnegative = np.max(squares, axis=0)
    assert signed <= change.squared + 1e-9
    assert nonnegative <= change.nonnegative + 1e-9
    assert max(rows) == change.rows
    # With one edge a node, both ends cannot take up the same node.
    if degree == 2 or keep == "receiver":
        assert (signed, nonnegative) == pytest.approx((change.squared, change.nonnegative))


def within(a: np.ndarray, starts: list[int], hops: int) -> set[int]:
    """The nodes that reach one of ``starts`` in so many steps along what they hear."""
    paths = np.linalg.matrix_power(a + np.eye(len(a)), hops)
    return set(np.flatnonzero(paths[:, starts].any(1)))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_no_more_roots_read_a_changed_row_than_counted(degree: int):
    most = np.zeros((3, 2), dtype=int)
    terms = training(layers=3, degree=degree)
    for one, other in bounded_pairs(14, degree, 0.2, 120):
        changed = [int(v) for v in np.flatnonzero(np.abs(one - other).sum(1))]
        for hops in range(3):
            together = within(np.maximum(one, other), changed, hops) if changed else set()
            single = max(
                (len(within(np.maximum(one, other), [v], hops)) for v in changed), default=0
            )
            most[hops] = np.maximum(most[hops], [single, len(together)])
    bounds = [(reading_roots(terms, 3 - hops), changed_outputs(terms, hops)) for hops in range(3)]
    assert (most <= np.array(bounds)).all()
    assert most[0, 0] == bounds[0][0]
    assert most[1, 1] >= 0.7 * bounds[1][1]


NOT_BOUNDED, RECEIVER = Correction(bounding="none"), Correction(bounding="receiver")
GAP, GCN = {"aggregation": "gap"}, {"aggregation": "gcn", "least_degree": 3}


@pytest.mark.parametrize(
    ("changes", "squares"),
    [
        ({}, (12, 8)),
        ({"correction": Correction(nonnegative=True)}, (8, 8)),
        ({"correction": NOT_BOUNDED}, (2, 2)),
        ({"correction": FROZEN, **GAP}, (12, 12)),  # its rows keep their signs
        (GCN, (12 / 16, 8 / 16)),
    ],
)
def test_what_a_layer_costs(changes: dict[str, Any], squares: tuple[float, ...]):
    assert layer_squares(training(**changes)) == pytest.approx(squares)


def test_how_many_roots_read_a_row():
    assert [reading_roots(training(correction=RECEIVER), layer) for layer in (1, 2)] == [1000, 1]
    assert [reading_roots(training(), layer) for layer in (0, 1, 2)] == [4 * 5, 1 + 6, 1]


@pytest.mark.parametrize(
    ("described", "changes"),
    [
        *((training, {name: 0}) for name in ("nodes", "batch", "steps", "layers", "degree")),
        (training, {"batch": 1001}),
        (training, {"aggregation": "sage"}),
        (training, {"aggregation": "gcn"}),
        (training, {"least_degree": 3}),
        (training, {"aggregation": "vfgnn"}),
        *((training, {**GCN, "least_degree": degree}) for degree in (1, 6)),
        (Correction, {"bounding": "all"}),
        (Correction, {"weights": "free"}),
        (Correction, {"one_shot": True, "weights": "dpsgd"}),
        (Correction, {"evaluations": -1}),
        (Correction, {"gradient_ratio": 0.0}),
        (Correction, {"degree_ratio": math.nan}),
    ],
)
def test_what_is_out_of_range_is_refused(described: Any, changes: dict[str, Any]):
    with pytest.raises(PrivacyError):
        described(**changes)
