"""Canary edges."""

import numpy as np
import pytest
from small import task_of

from feddep.privacy.profile import exact_guarantee
from feddep.training.learner import Learner
from feddep.training.task import Task
from studies.privacy_audit import canaries


@pytest.mark.parametrize(("degree", "fanout"), [(15, 5), (5, 5), (6, 5), (1, 2)])
def test_one_sampling_approaches_its_exact_profile(degree, fanout):
    found = canaries.sampling_row(degree, fanout, 0, 20_000)
    truth = exact_guarantee(degree, fanout).delta
    assert truth - 0.025 < found["least_delta"] <= truth
    assert found["low"] > 5  # what one list cannot give shows for certain: no finite ε holds at a small δ


def test_the_worlds_differ_in_one_edge():
    canary = canaries.insert_canary(task_of(), 4)
    present, absent = canary.worlds
    with_edge, without = ({tuple(edge) for edge in world.graph.edges().tolist()} for world in canary.worlds)
    assert with_edge - without == {(canary.target, canary.node)}
    assert without < with_edge
    assert (present.graph.features != absent.graph.features).nnz == 0
    own = absent.graph.features[:, [-1]].toarray().ravel()
    assert np.flatnonzero(own).tolist() == [canary.node]
    assert canary.node not in absent.split.train
    assert canary.target in absent.split.train
    assert absent.graph.degrees[canary.target] == canary.degree == 4
    assert absent.graph.num_nodes == task_of().subgraphs()[canary.client][0].num_nodes + 1


def test_an_update_shows_the_canary_whenever_it_was_drawn():
    canary = canaries.insert_canary(task_of(), 2)
    assert canary.degree == 2
    present, absent = canaries.canary_weights(canary, range(8), Task.new_model, Learner, "test")
    assert (absent == absent[0]).all()
    drawn = (present != absent).any(axis=1)
    assert drawn.sum() >= 4  # each reading misses it with probability 8/27, and the root alone makes two
    again, _ = canaries.canary_weights(canary, range(8), Task.new_model, Learner, "test")
    assert (again == present).all()


def test_prototypes_are_told_apart_in_any_order():
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(4, 6))
    moved = centres.copy()
    moved[2] += 0.3

    def runs(of: np.ndarray, count: int) -> np.ndarray:
        return np.array([rng.permutation(of + 0.05 * rng.normal(size=of.shape)) for _ in range(count)])

    statistic = canaries.discriminant([runs(moved, 20), runs(centres, 20)])
    assert statistic(runs(moved, 20)).min() > statistic(runs(centres, 20)).max()
