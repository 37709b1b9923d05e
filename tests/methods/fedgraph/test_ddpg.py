"""The agent: its step against the equations, and how it explores."""

import copy

import numpy as np
import torch

from feddep.methods.fedgraph.ddpg import Ddpg, Learning
from small_models import flat


def test_a_learning_step_is_the_equations():
    learning = Learning(batch=4)
    agent = Ddpg(3, 2, learning, seed=0)
    rng = np.random.default_rng(0)
    steps = [
        (rng.normal(size=3), rng.random(2), float(rng.normal()), rng.normal(size=3))
        for _ in range(4)
    ]
    for step in steps:
        agent.remember(*step)
    before = copy.deepcopy(agent)
    agent.learn()

    drawn = [steps[i] for i in before._rng.integers(0, 4, 4)]
    s, a, r, following = (
        torch.tensor(np.array([np.atleast_1d(step[k]) for step in drawn])).float() for k in range(4)
    )

    def mu(actor, state):
        return torch.sigmoid(actor(state, state[:, :0]))

    with torch.no_grad():
        y = r + learning.discount * before._target_critic(
            following, mu(before._target_actor, following)
        )
    critic_optimizer = torch.optim.Adam(before._critic.parameters(), lr=1e-3, weight_decay=1e-2)
    (before._critic(s, a) - y).square().mean().backward()
    critic_optimizer.step()
    actor_optimizer = torch.optim.Adam(before._actor.parameters(), lr=1e-4)
    (-before._critic(s, mu(before._actor, s))).mean().backward()
    actor_optimizer.step()
    for part in ("_critic", "_actor"):
        fast = flat(getattr(agent, part).parameters())
        torch.testing.assert_close(fast, flat(getattr(before, part).parameters()))
        slow, was = (flat(getattr(of, f"_target{part}").parameters()) for of in (agent, before))
        torch.testing.assert_close(slow, 0.995 * was + 0.005 * fast)


def test_it_does_not_learn_before_it_has_a_batch_of_experience():
    agent = Ddpg(1, 1, Learning(batch=5), seed=0)
    for count in range(1, 6):
        agent.remember(np.zeros(1), np.ones(1), 1.0, np.zeros(1))
        before = copy.deepcopy(agent._actor.state_dict())
        agent.learn()
        same = all(
            torch.equal(tensor, before[name]) for name, tensor in agent._actor.state_dict().items()
        )
        assert same == (count < 5)


def test_exploration_adds_normal_noise_of_its_standard_deviation_within_the_bounds():
    state = np.array([0.3, -0.2, 0.5])
    agent = Ddpg(3, 2, Learning(exploration=0.05), seed=0)
    plain = agent.act(state, explore=False)
    np.testing.assert_array_equal(plain, agent.act(state, explore=False))
    noise = np.array([agent.act(state, explore=True) for _ in range(4000)]) - plain
    np.testing.assert_allclose(noise.mean(axis=0), 0, atol=0.004)  # five standard errors
    np.testing.assert_allclose(noise.std(axis=0), 0.05, rtol=0.06)
    wild = Ddpg(3, 2, Learning(exploration=5.0), seed=0)
    bounded = np.array([wild.act(state, explore=True) for _ in range(50)])
    assert (bounded.min(), bounded.max()) == (0.0, 1.0)
