"""Canary edges."""

import numpy as np
import pytest

from feddep import frameworks
from feddep.audit import AuditError, canaries
from feddep.datasets.synthetic import planted_partition
from feddep.partition import louvain
from feddep.privacy.profile import exact
from feddep.problem import Problem
from feddep.settings import Setting
from feddep.splits import random_split


def problem_of(fanout: int = 3) -> Problem:
    graph = planted_partition(180, 4, 12, 64, 6.0, 1.0, 8, 0.8, 0)
    split = random_split(graph.num_nodes, {"train": 0.6, "val": 0.2, "test": 0.2}, 0)
    setting = Setting("sgd", 0.5, 0.0, 16, fanout, 2, 1, 2, 16, 0.2)
    return Problem("audited", graph, split, louvain(graph, 3, 0), setting, 0)


@pytest.mark.parametrize(("degree", "fanout"), [(15, 5), (5, 5), (6, 5), (1, 2)])
def test_one_sampling_approaches_its_exact_profile(degree, fanout):
    found = canaries.of_sampling(degree, fanout, 0, 20_000).bound
    truth = exact(degree, fanout).delta
    assert truth - 0.025 < found.least_delta <= truth
    assert found.low > 5  # what one list cannot give shows for certain: no finite ε holds at a small δ


def test_the_worlds_differ_in_one_edge():
    client, planted = canaries.plant(problem_of(), 4)
    with_edge, without = ({tuple(edge) for edge in world.graph.edges().tolist()} for world in planted.worlds)
    assert with_edge - without == {(planted.hub, planted.canary)}
    assert without < with_edge
    assert (planted.present.graph.features != planted.without.graph.features).nnz == 0
    own = planted.without.graph.features[:, [planted.feature]].toarray().ravel()
    assert np.flatnonzero(own).tolist() == [planted.canary]
    assert planted.canary not in planted.without.split.train
    assert planted.hub in planted.without.split.train
    assert planted.without.graph.degrees[planted.hub] == planted.degree == 4
    assert planted.without.graph.num_nodes == problem_of().subgraphs()[client][0].num_nodes + 1


def test_an_update_shows_the_canary_whenever_it_was_drawn():
    _, planted = canaries.plant(problem_of(), 2)
    assert planted.degree == 2
    present, absent = canaries.rows_of(planted, canaries._plain(planted), range(8), "test")
    assert (absent == absent[0]).all()
    drawn = (present != absent).any(axis=1)
    assert drawn.sum() >= 4  # each reading misses it with probability 8/27, and the root alone makes two
    again, _ = canaries.rows_of(planted, canaries._plain(planted), range(8), "test")
    assert (again == present).all()


def test_a_whole_audit_stays_below_what_is_accounted():
    parameters = frameworks.load("feddep_wo_nfdp").Parameters(embedding=8, pretraining_epochs=1, prototypes=3, fused="authors")
    rows = canaries.measure(problem_of(), parameters, 8)
    assert len({row["degree"] for row in rows if row["releases"].startswith("FedAvg")}) == 2
    noised = [row for row in rows if "DP-SGD" in row["releases"]]
    assert len(noised) == 1
    assert noised[0]["low"] <= noised[0]["promised_epsilon"]
    assert all(row["low"] <= max(row["value"], 0) for row in rows)
    assert all(0 <= row["least_delta"] <= 1 and row["trials"] == 4 for row in rows)


def test_prototypes_are_told_apart_in_any_order():
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(4, 6))
    moved = centres.copy()
    moved[2] += 0.3

    def runs(of: np.ndarray, count: int) -> np.ndarray:
        return np.array([rng.permutation(of + 0.05 * rng.normal(size=of.shape)) for _ in range(count)])

    statistic = canaries.separating([runs(moved, 20), runs(centres, 20)])
    assert statistic(runs(moved, 20)).min() > statistic(runs(centres, 20)).max()


def test_other_parameters_are_refused():
    with pytest.raises(AuditError, match="use --framework feddep_wo_nfdp"):
        canaries.measure(problem_of(), frameworks.load("fedavg").Parameters())
