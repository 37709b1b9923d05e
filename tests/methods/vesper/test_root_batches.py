"""Batches of roots: their law, and that both parties draw the same."""

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from feddep.methods.vesper.root_batches import RootBatches
from feddep.utils.errors import ConfigError

NODES = np.array([3, 5, 8, 9, 11, 20, 21])


@given(st.integers(1, 7), st.booleans(), st.integers(0, 99))
def test_two_parties_draw_the_same_batches_of_distinct_training_nodes(size, shuffled, seed):
    first, second = (RootBatches(NODES, size, shuffled, seed, "batches") for _ in "ab")
    for _ in range(2 * first.in_epoch):
        batch = first.draw()
        assert batch.tolist() == second.draw().tolist()
        assert len(batch) in first.sizes
        assert len(set(batch.tolist())) == len(batch)
        assert set(batch.tolist()) <= set(NODES.tolist())


@given(st.integers(1, 7), st.integers(0, 99))
def test_the_batches_of_a_shuffled_epoch_divide_the_nodes(size, seed):
    batches = RootBatches(NODES, size, True, seed, "batches")
    epochs = [np.concatenate([batches.draw() for _ in range(batches.in_epoch)]) for _ in range(2)]
    assert all(sorted(epoch) == NODES.tolist() for epoch in epochs)


def test_fresh_batches_are_uniform_and_do_not_depend_on_each_other():
    batches = RootBatches(NODES, 2, False, 0, "batches")
    drawn = np.array([np.sort(batches.draw()) for _ in range(6000)])
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == 21
    assert scipy.stats.chisquare(counts).pvalue > 0.001
    met = [bool(set(a) & set(b)) for a, b in itertools.pairwise(drawn)]
    assert np.mean(met) == pytest.approx(1 - (5 * 4) / (7 * 6), abs=0.03)


def test_a_batch_above_the_number_of_nodes_is_a_mistake():
    with pytest.raises(ConfigError, match=r"setting\.batch_size is 8; it must be at most the number of training nodes, 7"):
        RootBatches(NODES, 8, True, 0, "batches")
