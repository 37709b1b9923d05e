"""FedGraph's own promises: what is shared, and when the policy explores, learns and counts."""

import itertools

import numpy as np

from feddep.methods.fedgraph.ddpg import Ddpg
from feddep.training.learner import Learner
from method_tasks import CLIENTS, ROUNDS, train, watch


def run(clients=CLIENTS, **parameters):
    return train("fedgraph", clients=clients, **parameters)


def test_of_one_client_with_the_largest_fanouts_it_is_fedavg(monkeypatch):
    monkeypatch.setattr(Ddpg, "act", lambda self, state, explore: np.ones(2))
    ours, plain = run(1, episodes=0), train("fedavg", clients=1)
    assert ours.curve == plain.curve


def test_the_agent_explores_and_learns_in_practice_only(monkeypatch):
    explored, learned = [], []
    act, learn = Ddpg.act, Ddpg.learn
    monkeypatch.setattr(
        Ddpg,
        "act",
        lambda self, state, explore: (explored.append(explore), act(self, state, explore))[1],
    )
    monkeypatch.setattr(Ddpg, "learn", lambda self: (learned.append(len(explored)), learn(self))[1])
    run(episodes=1, updates=2)
    assert explored == [True] * ROUNDS + [False] * ROUNDS
    assert learned == [number for number in range(1, ROUNDS + 1) for _ in range(2)]


def test_what_is_remembered_is_the_state_before_the_action_and_the_one_after(monkeypatch):
    remembered = watch(monkeypatch, Ddpg, "remember")
    run(episodes=1, cost_weight=0.0, target=0.5)
    assert not remembered[0]["state"].any()  # clients start with equal weights
    for before, after in itertools.pairwise(remembered):
        np.testing.assert_array_equal(before["following"], after["state"])
        assert before["following"].any()
    assert all(-1 <= step["reward"] <= 7 for step in remembered)  # 64^(−0.5) − 1 to 64^0.5 − 1


def test_every_client_and_layer_draws_as_many_neighbours_as_it_is_told(monkeypatch):
    used = []
    epoch = Learner.epoch
    monkeypatch.setattr(
        Learner, "epoch", lambda self, *a: (used.append(self.fanouts), epoch(self, *a))[1]
    )
    monkeypatch.setattr(Ddpg, "act", lambda self, state, explore: np.linspace(0, 1, 2 * CLIENTS))
    run(episodes=0)
    assert used == [(1, 1), (2, 2), (3, 3)] * ROUNDS  # ⌈3 a⌉ for a = 0, 0.2, 0.4, 0.6, 0.8, 1
