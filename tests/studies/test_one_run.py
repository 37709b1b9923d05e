"""Many canaries in one training by DP-SGD, every step of which is watched."""

import numpy as np
import pytest
import torch
from small import task_of

from feddep.privacy.dpsgd import Privacy
from feddep.privacy.dpsgd_accounting import binomial_changes, edge_level
from studies.privacy_audit import one_run


def test_little_noise_shows_what_so_many_canaries_can_and_much_noise_little(monkeypatch):
    monkeypatch.setattr(one_run, "SIMULATIONS", 3)
    monkeypatch.setattr(one_run, "NOISES", (1.0, 1 / 200))
    much, little = one_run.measure(task_of(dropout=0.0), Privacy(10.0, 2.0), 1e-5, runs=3, canaries=40)
    assert little["low"] > 0.8 * little["attainable"] > 1.5
    assert much["low"] <= min(much["promised_epsilon"], little["low"])
    assert (much["canaries"], much["sigma"], little["sigma"]) == (120, 10.0, 0.05)
    for row in (much, little):
        assert row["low"] <= row["most"]
        assert row["guesses"] >= row["correct"]


def test_the_promise_is_that_of_an_edge_which_one_training_node_reads():
    task = task_of()
    part = task.subgraphs()[0]
    found = one_run.train_watched(task, part, Privacy(2.0, 2.0), 10, 0)
    assert found.size == len(part[1].train) + 10
    assert found.steps == 2 * -(-found.size // 16)
    (row, *_) = one_run.measure(task, Privacy(2.0, 2.0), 1e-5, runs=1, canaries=10)
    smallest = min(len(split.train) for _, split in task.subgraphs()) + 10
    expected = edge_level(2.0, binomial_changes(1, 16 / smallest), 2 * -(-smallest // 16), 1e-5).least
    assert row["promised_epsilon"] == expected


def test_without_dropout_what_is_watched_is_what_is_added(monkeypatch):
    """With next to no noise and all nodes in every batch, the product with the expected gradient is its square, or nothing."""
    task = task_of(dropout=0.0)
    task = task.__class__(**{**vars(task), "setting": task.setting.replace(batch_size=10_000, rounds=1)})
    seen = []
    rows = one_run.Watched._rows

    def spy(self, model):
        seen.append(rows(self, model))
        return seen[-1]

    monkeypatch.setattr(one_run.Watched, "_rows", spy)
    found = one_run.train_watched(task, task.subgraphs()[0], Privacy(1e-6, 2.0), 12, 0)
    expected, observed = seen[0], seen[1] * found.size
    joined = torch.from_numpy(found.joined)
    assert torch.allclose(observed[:, joined], expected[:, joined], rtol=1e-3, atol=1e-4)
    assert observed[:, ~joined].abs().max() < 1e-3
    assert (expected.square().sum(dim=(0, 2)) > 0.1).all()
    assert ((found.scores > 0) == found.joined).all()


def test_scores_of_simulated_canaries_are_likelihood_ratios():
    """E over the unjoined of e^score is 1, and a joined canary is as likely at a score s as e^s times an unjoined one."""
    scores, joined = one_run.simulated(2.0, 0.3, 5, 200_000, np.random.default_rng(0))
    assert np.exp(scores[~joined]).mean() == pytest.approx(1, abs=0.02)
    near = np.abs(scores - 0.5) < 0.05
    assert joined[near].sum() / (~joined[near]).sum() == pytest.approx(np.exp(scores[near].mean()), rel=0.1)
