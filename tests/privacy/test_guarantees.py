"""The guarantees of all clients: each line held against the module that it comes from."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling_laws import enumerated_delta, multisets, roots_of_edges

from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.privacy.accountant import Guarantee, compose, one_sampling
from feddep.privacy.changed_trees import most_changed, tree_changes
from feddep.privacy.dpsgd_accounting import binomial_changes, edge_level, example_level
from feddep.privacy.guarantees import DELTA, ClientGuarantee, client_guarantees, weakness
from feddep.training.config import TrainingConfig
from graphs import graphs, random_graph

SETTING = TrainingConfig(batch_size=8, fanout=2, rounds=3, local_epochs=2, hidden_channels=4)


def test_every_line_of_a_client():
    graph = random_graph(60, 140)
    partition = Partition(np.arange(60) % 2, 2)
    split = Split(np.arange(36), np.arange(36, 48), np.arange(48, 60))
    lines = list(client_guarantees(graph, partition, split, SETTING, {"mine": 3.0}))
    assert len(lines) == 2 * (4 + 6)
    for client in range(2):
        own = graph.subgraph(partition.nodes(client))
        here = {(line.hidden, line.accounting, line.bound): line for line in lines if line.client == client}
        median = sorted(own.degrees.tolist())[own.num_nodes // 2 - 1]
        published = here["median node", "published", ""]
        assert (published.degree, published.times) == (median, 12)
        assert published.one == one_sampling(median, 2)
        assert published.all == compose(one_sampling(median, 2), 12, DELTA)
        assert here["worst node", "published", ""].degree == own.degrees.min()

        rate, steps, roots = 8 / 18, 18, int(roots_of_edges(own, np.arange(18), 2).max())
        simple = edge_level(3.0, binomial_changes(roots, rate), steps, DELTA)
        example = example_level(3.0, rate, 1, DELTA)
        stand_ins = graph.degrees[partition.nodes(client)] - own.degrees
        changes = [tree_changes(own, np.arange(18), 2, 2, each) for each in (None, stand_ins)]
        edge = edge_level(3.0, most_changed(sp.csr_array(sp.vstack(changes)), rate), steps, DELTA)
        for bound, expected in (("trees", edge), ("simple", simple)):
            found = here["edge", "pld", bound]
            assert found.all is not None
            assert found.all.epsilon == expected.pld
            assert found.all.delta == pytest.approx(DELTA)
            assert (found.roots, found.times, found.method) == (roots, steps, "mine")
        assert edge.pld < simple.pld
        assert here["example", "rdp", ""].one.epsilon == example.rdp


@settings(max_examples=30)
@given(graphs(max_nodes=7), st.integers(1, 3))
def test_the_exact_guarantee_of_the_median_node_is_that_of_the_sampler(graph, fanout):
    split = Split(np.arange(graph.num_nodes), np.array([], dtype=int), np.array([], dtype=int))
    setting = SETTING.replace(fanout=fanout)
    lines = list(client_guarantees(graph, Partition(np.zeros(graph.num_nodes, dtype=int), 1), split, setting, {}))
    exact = next(line for line in lines if (line.hidden, line.accounting) == ("median node", "exact"))
    degree = exact.degree
    laws = [multisets(range(length), fanout) for length in range(max(degree - 1, 0), degree + 2)]
    found = [enumerated_delta(shorter, longer, 1) for shorter, longer in itertools.pairwise(laws)]
    assert exact.one.delta == pytest.approx(float(max(found)))
    published = next(line for line in lines if (line.hidden, line.accounting) == ("median node", "published"))
    assert (published.one is None) == (degree == 0)


def test_what_promises_nothing_is_worst():
    def line(one: Guarantee | None, all_: Guarantee | None) -> ClientGuarantee:
        return ClientGuarantee(0, "sampling", "worst node", "published", one, all_, 1)

    ranked = [
        line(Guarantee(1.0, -0.1), Guarantee(1.0, -0.1)),
        line(Guarantee(1.0, -0.1), Guarantee(2.0, -0.1)),
        line(Guarantee(0.5, -0.2), Guarantee(0.5, -0.2)),
        line(Guarantee(0.0, -np.inf), Guarantee(0.0, -np.inf)),
        line(None, None),
    ]
    assert all(weakness(better) < weakness(worse) for better, worse in itertools.pairwise(ranked))
