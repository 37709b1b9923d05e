"""Canary edges: one in many runs, and many in one training by DP-SGD, every step of which is
watched.
"""

import numpy as np
import pytest
import torch
from small import task_of

from feddep.privacy.dpsgd import Privacy
from feddep.privacy.dpsgd_accounting import binomial_changes, edge_level
from feddep.privacy.profile import exact_guarantee
from feddep.training.learner import Learner
from feddep.training.task import Task
from studies.privacy.privacy_audit import canaries, one_run


@pytest.mark.parametrize(("degree", "fanout"), [(15, 5), (5, 5), (6, 5), (1, 2)])
def test_one_sampling_approaches_its_exact_profile(degree, fanout):
    found = canaries.sampling_row(degree, fanout, 0, 20_000)
    truth = exact_guarantee(degree, fanout).delta
    assert truth - 0.025 < found["least_delta"] <= truth
    # What one list cannot give shows for certain: no finite ε holds at a small δ.
    assert found["low"] > 5


def test_the_worlds_differ_in_one_edge_and_an_update_shows_it_whenever_it_was_drawn():
    task = task_of()
    canary = canaries.insert_canary(task, 2)
    present, absent = canary.worlds
    with_edge, without = (
        {tuple(edge) for edge in world.graph.edges().tolist()} for world in canary.worlds
    )
    assert with_edge - without == {(canary.target, canary.node)}
    assert without < with_edge
    assert (present.graph.features != absent.graph.features).nnz == 0
    assert np.flatnonzero(absent.graph.features[:, [-1]].toarray()).tolist() == [canary.node]
    assert canary.node not in absent.split.train
    assert canary.target in absent.split.train
    assert absent.graph.degrees[canary.target] == canary.degree == 2
    assert absent.graph.num_nodes == task.subgraphs()[canary.client][0].num_nodes + 1

    told, nothing = canaries.canary_weights(canary, range(8), Task.new_model, Learner, "test")
    assert (nothing == nothing[0]).all()
    assert (told != nothing).any(
        axis=1
    ).sum() >= 4  # each reading misses it with probability 8/27, and the root alone makes two
    again, _ = canaries.canary_weights(canary, range(8), Task.new_model, Learner, "test")
    assert (again == told).all()


def test_prototypes_are_told_apart_in_any_order():
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(4, 6))
    moved = centres + 0.3 * (np.arange(4) == 2)[:, None]

    def runs(of: np.ndarray) -> np.ndarray:
        return np.array([rng.permutation(of + 0.05 * rng.normal(size=of.shape)) for _ in range(20)])

    statistic = canaries.discriminant([runs(moved), runs(centres)])
    assert statistic(runs(moved)).min() > statistic(runs(centres)).max()


def test_little_noise_shows_what_so_many_canaries_can_and_much_noise_little(monkeypatch):
    for name, value in {
        "SIMULATIONS": 3,
        "NOISES": (1.0, 1 / 200),
        "RUNS": 3,
        "CANARIES": 40,
    }.items():
        monkeypatch.setattr(one_run, name, value)
    task = task_of(dropout=0.0)
    much, little = one_run.measure(task, Privacy(10.0, 2.0), 1e-5)
    steps = 2 * -(-(smallest := min(len(split.train) for _, split in task.subgraphs()) + 40) // 16)
    assert (
        much["promised_epsilon"]
        == edge_level(10.0, binomial_changes(1, 16 / smallest), steps, 1e-5).least
    )
    assert little["low"] > 0.8 * little["attainable"] > 1.5
    assert much["low"] <= min(much["promised_epsilon"], little["low"])
    assert (much["canaries"], much["sigma"], little["sigma"]) == (120, 10.0, 0.05)
    assert all(
        row["low"] <= row["most"] and row["guesses"] >= row["correct"] for row in (much, little)
    )


def test_without_dropout_what_is_watched_is_what_is_added(monkeypatch):
    """With next to no noise and all nodes in every batch, the product with the expected gradient is
    its square, or nothing.
    """
    task = task_of(dropout=0.0)
    task = task.__class__(
        **{**vars(task), "setting": task.setting.replace(batch_size=10_000, rounds=1)}
    )
    seen, rows = [], one_run.Watched._rows
    monkeypatch.setattr(
        one_run.Watched, "_rows", lambda self, model: seen.append(rows(self, model)) or seen[-1]
    )
    found = one_run.train_watched(task, task.subgraphs()[0], Privacy(1e-6, 2.0), 12, 0)
    expected, observed = seen[0], seen[1] * found.size
    joined = torch.from_numpy(found.joined)
    assert torch.allclose(observed[:, joined], expected[:, joined], rtol=1e-3, atol=1e-4)
    assert observed[:, ~joined].abs().max() < 1e-3
    assert (expected.square().sum(dim=(0, 2)) > 0.1).all()
    assert ((found.scores > 0) == found.joined).all()


def test_scores_of_simulated_canaries_are_likelihood_ratios():
    """E over the unjoined of e^score is 1, and a joined canary is as likely at a score s as e^s
    times an unjoined one.
    """
    scores, joined = one_run.simulated(2.0, 0.3, 5, 200_000, np.random.default_rng(0))
    assert np.exp(scores[~joined]).mean() == pytest.approx(1, abs=0.02)
    near = np.abs(scores - 0.5) < 0.05
    assert joined[near].sum() / (~joined[near]).sum() == pytest.approx(
        np.exp(scores[near].mean()), rel=0.1
    )
