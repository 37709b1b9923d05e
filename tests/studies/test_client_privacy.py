"""The guarantees of all clients, and where Theorem 3.1 fails, held against enumerated laws and the
real sampler.
"""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from small import case_of, of_run, page, task_of

from feddep.graph.partition import Partition
from feddep.graph.sampling import sample_trees
from feddep.graph.split import Split
from feddep.privacy.accountant import (
    Guarantee,
    SamplingParameters,
    amplify,
    one_sampling,
    published_guarantee,
)
from feddep.privacy.dpsgd_accounting import binomial_changes, edge_level, example_level
from feddep.training.config import TrainingConfig
from feddep.training.task import Task
from graphs import graphs, random_graph, star
from sampling_laws import Law, divergence, enumerated_delta, multisets, roots_of_edges
from studies.measuring import frame, tables_of
from studies.privacy.client_privacy.changed_trees import most_changed, tree_changes
from studies.privacy.client_privacy.client_guarantees import client_trees, sampling_guarantees
from studies.privacy.client_privacy.measure import DELTA, client_guarantees
from studies.privacy.client_privacy.neighbour_sampling import (
    expected_samplings,
    lemma_b1_fails,
    one_sided_losses,
    selected_delta,
)
from studies.privacy.client_privacy.page import weakest

pytestmark = pytest.mark.slow

SETTING = TrainingConfig(batch_size=8, fanout=2, rounds=3, local_epochs=2, hidden_channels=4)


def test_every_line_of_a_client():
    graph = random_graph(60, 140)
    partition = Partition(np.arange(60) % 2, 2)
    split = Split(np.arange(36), np.arange(36, 48), np.arange(48, 60))
    lines = list(
        client_guarantees(Task("small", graph, split, partition, SETTING, 0), {"mine": 3.0})
    )
    assert len(lines) == 2 * (4 + 6)
    for trees in client_trees(graph, partition, split, 2, 2):
        own = graph.subgraph(partition.nodes(trees.client))
        here = {
            (line.hidden, line.accounting, line.bound): line
            for line in lines
            if line.client == trees.client
        }
        assert here["median node", "published", ""].times == 12
        rate, steps, roots = 8 / 18, 18, int(roots_of_edges(own, np.arange(18), 2).max())
        for bound, law in (
            ("trees", most_changed(trees.changes, rate)),
            ("simple", binomial_changes(roots, rate)),
        ):
            found = here["edge", "pld", bound]
            assert (found.all.epsilon, found.all.delta) == (
                edge_level(3.0, law, steps, DELTA).pld,
                pytest.approx(DELTA),
            )
            assert (found.roots, found.times, found.method) == (roots, steps, "mine")
        assert here["edge", "pld", "trees"].all.epsilon < here["edge", "pld", "simple"].all.epsilon
        assert here["example", "rdp", ""].one.epsilon == example_level(3.0, rate, 1, DELTA).rdp


@given(graphs(max_nodes=6), st.integers(1, 3))
def test_worst_and_median_node_are_those_of_the_laws(graph, fanout):
    def exact(degree: int) -> float:
        """The larger δ of losing a neighbour and of gaining one."""
        laws = [
            multisets(range(length), fanout) for length in range(max(degree - 1, 0), degree + 2)
        ]
        return float(
            max(
                enumerated_delta(shorter, longer, 1) for shorter, longer in itertools.pairwise(laws)
            )
        )

    parameters = SamplingParameters(fanout, layers=2, slack=DELTA)
    found = {
        (each.hidden, each.accounting): each
        for each in sampling_guarantees(graph, None, parameters)
    }
    degrees = sorted(graph.degrees.tolist())
    median = degrees[(len(degrees) - 1) // 2]
    assert found["worst node", "exact"].one.delta == pytest.approx(max(map(exact, degrees)))
    assert found["worst node", "exact"].degree is None
    assert found["median node", "exact"].one.delta == pytest.approx(exact(median))
    assert found["median node", "exact"].all.log_rest == pytest.approx(
        2 * found["median node", "exact"].one.log_rest
    )
    for node, degree in (("worst node", degrees[0]), ("median node", median)):
        theorem = published_guarantee(degree, parameters) if degree else None
        assert found[node, "published"].degree == degree
        assert found[node, "published"].one == (theorem and theorem.one)
        assert found[node, "published"].all == (theorem and theorem.composed)


@settings(max_examples=30)
@given(graphs(), st.integers(1, 3), st.integers(1, 4), st.data())
def test_the_trees_of_clients_are_those_of_their_own_graphs(graph, layers, fanout, data):
    """With and without entries for neighbours at other clients in the lists."""
    owner, kinds = (
        data.draw(arrays(np.int64, graph.num_nodes, elements=st.integers(0, most)))
        for most in (1, 2)
    )
    owner[0] = 0
    split = Split(*(np.flatnonzero(kinds == kind) for kind in range(3)))
    for client in client_trees(
        graph, Partition(owner, int(owner.max()) + 1), split, layers, fanout
    ):
        nodes = np.flatnonzero(owner == client.client)
        own, roots = graph.subgraph(nodes), np.flatnonzero(kinds[nodes] == 0)
        assert client.training == len(roots)
        assert (
            client.changes[: own.num_edges] != tree_changes(own, roots, layers, fanout)
        ).nnz == 0
        outside = graph.degrees[nodes] - own.degrees
        further = (
            tree_changes(own, roots, layers, fanout, outside)
            if outside.any()
            else sp.csr_array((0, len(roots)))
        )
        assert client.changes.shape[0] == own.num_edges + further.shape[0]
        assert (client.changes[own.num_edges :] != further).nnz == 0
    (whole,) = client_trees(graph, None, split, layers, fanout)
    assert (whole.client, whole.changes.shape) == (None, (graph.num_edges, len(split.train)))


def test_a_client_without_edges_or_training_nodes():
    split = Split(np.array([0]), np.array([1]), np.array([2, 3]))
    task = Task("small", star(3), split, Partition(np.array([0, 1, 1, 1]), 2), SETTING, 0)
    noised = [each for each in client_guarantees(task, {"mine": 3.0}) if each.mechanism == "dpsgd"]
    assert {(each.client, each.hidden) for each in noised if each.all.epsilon > 0} == {
        (0, "example")
    }
    assert {(each.client, each.hidden, each.roots) for each in noised if not each.times} == {
        (1, "edge", 0),
        (1, "example", None),
    }


def test_what_promises_nothing_is_worst():
    """From the best to the worst client: by the exact δ, by the published one, by ε, and without
    any ε.
    """
    found = [(-1, -9, 9), (-2, -0.1, 1), (-2, -0.1, 2), (-2, -np.inf, 0), (-2, None, None)]
    rows = [
        {**of_run(), "hidden": "worst node", "client": client, "accounting": accounting}
        | {"log10_rest_one": rest, "epsilon": epsilon, "log10_rest": rest}
        for client, (exact, published, ε) in enumerate(found)
        for accounting, rest, epsilon in (("published", published, ε), ("exact", exact, 0.0))
    ]
    for last in range(5):
        assert {
            *weakest(frame(rows[: 2 * last + 2]))["client"],
            *weakest(frame(rows[2 * last + 1 :: -1]))["client"],
        } == {last}


def test_the_page_shows_sampling_once_and_noise_of_each_method():
    made = [
        tables_of("client_privacy", case_of(name, task_of(), steps=False))
        for name in ("fedavg", "fedgnn")
    ]
    assert {row["mechanism"] for row in made[0]["guarantees"]} == {"sampling"}
    rows = [row for tables in made for row in tables["guarantees"]]
    rows += [{**row, "method": "feddep_wo_nfdp"} for row in rows if row["method"] == "fedgnn"]
    table = page("client_privacy", guarantees=rows, settings=made[0]["settings"])["table.csv"]
    assert table.groupby("method").size().to_dict() == {
        "": 3 * 4,
        "fedgnn": 3 * 6,
        "feddep_wo_nfdp": 3 * 6,
    }


def published(degree: int, fanout: int) -> Fraction:
    """δ of Lemma B.1, as a fraction."""
    return (
        Fraction(fanout, degree) if fanout < degree else 1 - Fraction(degree - 1, degree) ** fanout
    )


@pytest.mark.parametrize("both_lists", [False, True])
@pytest.mark.parametrize("fanout", range(1, 6))
@pytest.mark.parametrize("degree", range(1, 9))
def test_for_which_least_degrees_the_published_bound_fails(degree, fanout, both_lists):
    """Over all pairs of lists of which one, or both, have at least D neighbours; longer ones than
    here differ less.
    """
    shortest = degree if both_lists else degree - 1
    laws = {n: multisets(range(n), fanout) for n in range(shortest, 11)}
    factor = Fraction(math.exp(one_sampling(degree, fanout).epsilon))
    worst = max(enumerated_delta(laws[n + 1], laws[n], factor) for n in range(shortest, 10))
    assert lemma_b1_fails(degree, fanout, both_lists) == (worst > published(degree, fanout))


@pytest.mark.parametrize("fanout", range(1, 6))
@pytest.mark.parametrize("length", range(1, 8))
def test_each_side_has_its_own_loss(length, fanout):
    present, absent = multisets(range(length + 1), fanout), multisets(range(length), fanout)
    for found, (true, other) in zip(
        one_sided_losses(length, fanout), ((absent, present), (present, absent)), strict=True
    ):
        assert float(divergence(true, other, Fraction(math.exp(found.epsilon)))) == pytest.approx(
            found.delta, abs=1e-12
        )
        # Δ is the least.
        assert float(divergence(true, other, Fraction(10**9))) == pytest.approx(
            found.delta, abs=1e-12
        )
        if found.epsilon > 0:  # and ε the least with it
            assert (
                float(divergence(true, other, Fraction(math.exp(0.99 * found.epsilon))))
                > found.delta + 1e-4
            )
    # Nothing hides the first edge of a node.
    assert one_sided_losses(0, fanout) == (Guarantee(0.0, -math.inf),) * 2


def selected(length: int, fanout: int, rate: Fraction) -> Law:
    """The law of the neighbours drawn from those of a list that a Bernoulli sampler has
    selected.
    """
    law: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for kept in itertools.product((False, True), repeat=length):
        chance = math.prod((rate if each else 1 - rate for each in kept), start=Fraction(1))
        for drawn, share in multisets(
            list(itertools.compress(range(length), kept)), fanout
        ).items():
            law[drawn] += chance * share
    return law


@pytest.mark.parametrize(
    "rate", [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(1)]
)
@pytest.mark.parametrize("fanout", range(1, 5))
@pytest.mark.parametrize("length", range(6))
def test_drawing_from_selected_neighbours_is_that_of_the_enumeration(length, fanout, rate):
    longer, shorter = (selected(n, fanout, rate) for n in (length + 1, length))
    for factor in (Fraction(1), Fraction(3, 2), Fraction(7), Fraction(10**6)):
        found = selected_delta(length, fanout, float(rate), math.log(factor))
        assert found == pytest.approx(float(enumerated_delta(longer, shorter, factor)), abs=1e-12)


def test_a_bernoulli_sampler_does_not_amplify_as_published():
    """Six neighbours of which 2 are drawn, selected with r = 0.1: r d/D is 0.033, the truth
    0.089.
    """
    assert selected_delta(5, 2, 0.1, amplify(one_sampling(6, 2), 0.1).epsilon) == pytest.approx(
        0.08893608, abs=1e-8
    )
    assert selected_delta(100_000, 5, 0.5) == pytest.approx(0.5 * 5 / 50_001, rel=1e-3)


@pytest.mark.parametrize(("fanout", "layers"), [(1, 1), (2, 2), (2, 3), (4, 2)])
def test_the_real_sampler_reads_lists_as_often_as_expected(fanout, layers):
    graph, epochs = random_graph(12, 10, seed=4), 4_000
    assert (graph.degrees == 0).any()
    roots = np.tile(np.arange(12), epochs)
    trees = sample_trees(graph, roots, (fanout,) * layers, np.random.default_rng(1)).nodes
    places = [trees[:, : (1 + fanout) ** hop].reshape(epochs, -1) for hop in range(layers)]
    read = np.stack(
        [sum((each == node).sum(axis=1) for each in places) for node in range(12)], axis=1
    )
    error = read.std(axis=0) / np.sqrt(epochs)
    assert (
        np.abs(read.mean(axis=0) - expected_samplings(graph, fanout, layers)) <= 4.5 * error + 1e-12
    ).all()
    assert expected_samplings(star(1), 5, 2).tolist() == [7, 7]
