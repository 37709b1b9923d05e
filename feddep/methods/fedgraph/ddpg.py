"""Deep deterministic policy gradient (Lillicrap et al., 2016), the learner of FedGraph's sampling
policy.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from feddep.nn.linear import Linear
from feddep.utils import seeding


@dataclass(frozen=True)
class Learning:
    """How the agent learns; the defaults are those of FedGraph's authors' code."""

    actor_rate: float = 1e-4  # step sizes of Adam
    critic_rate: float = 1e-3
    critic_decay: float = 1e-2  # L2 regularizer of the critic
    discount: float = 0.99  # weight of the next step's value
    tracking: float = (
        0.005  # share of the way that the target networks go towards the trained ones in a step
    )
    exploration: float = 0.1  # standard deviation of the noise on actions while exploring
    batch: int = 32  # remembered steps that a learning step draws


class Network(nn.Module):
    """Two hidden layers of 400 and 300 units with ReLU; ``beside`` further inputs join before the
    second.
    """

    def __init__(self, inputs: int, beside: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = Linear(inputs, 400)
        self.second = Linear(400 + beside, 300)
        self.last = Linear(300, outputs)
        for layer in (self.first, self.second, self.last):
            layer.reset_parameters(generator)

    def forward(self, x: Tensor, beside: Tensor) -> Tensor:
        """Shape (B, outputs), from x of shape (B, inputs) and what joins, of shape (B, beside)."""
        hidden = torch.cat([self.first(x).relu(), beside], dim=1)
        return self.last(self.second(hidden).relu())


class Ddpg:
    """An agent whose state is a vector and whose action is a vector of numbers from 0 to 1.

    The actor μ(s) chooses an action, the critic Q(s, a) estimates its discounted reward.  A step on
    remembered (s, a, r, s'):

    * the critic minimises the mean (Q(s, a) − r − γ Q'(s', μ'(s')))²;
    * the actor maximises the mean Q(s, μ(s));
    * the targets Q' and μ' follow them.
    """

    def __init__(self, states: int, actions: int, learning: Learning, seed: int) -> None:
        """Start with an untrained agent, for states and actions of the given lengths."""
        generator = seeding.torch_generator(seed, "agent", "weights")
        self._learning = learning
        self._actions = actions
        self._rng = seeding.generator(seed, "agent", "draws")
        self._actor = Network(states, 0, actions, generator)
        self._critic = Network(states, actions, 1, generator)
        self._target_actor, self._target_critic = (
            copy.deepcopy(self._actor),
            copy.deepcopy(self._critic),
        )
        self._actor_optimizer = torch.optim.Adam(self._actor.parameters(), lr=learning.actor_rate)
        self._critic_optimizer = torch.optim.Adam(
            self._critic.parameters(), lr=learning.critic_rate, weight_decay=learning.critic_decay
        )
        self._memory: list[tuple[np.ndarray, np.ndarray, float, np.ndarray]] = []

    @torch.no_grad()
    def act(self, state: np.ndarray, explore: bool) -> np.ndarray:
        """The action for a state, with noise if it is to explore; float64, shape (actions,)."""
        action = (
            self._choose(self._actor, torch.from_numpy(state).float().unsqueeze(0))
            .squeeze(0)
            .double()
            .numpy()
        )
        if explore:
            action = action + self._rng.normal(0, self._learning.exploration, self._actions)
        return np.asarray(action.clip(0, 1))

    def remember(
        self, state: np.ndarray, action: np.ndarray, reward: float, following: np.ndarray
    ) -> None:
        """Keep one step: in ``state`` the ``action`` earned ``reward`` and led to the state
        ``following``.
        """
        self._memory.append((state, action, reward, following))

    def learn(self) -> None:
        """Take one learning step on remembered steps drawn at random; nothing before there is a
        batch of them.
        """
        if len(self._memory) < self._learning.batch:
            return
        drawn = [
            self._memory[i] for i in self._rng.integers(0, len(self._memory), self._learning.batch)
        ]
        state, action, reward, following = (
            torch.from_numpy(np.stack([np.atleast_1d(step[part]) for step in drawn])).float()
            for part in range(4)
        )
        with torch.no_grad():
            value = self._target_critic(following, self._choose(self._target_actor, following))
        wanted = reward + self._learning.discount * value
        self._descend(self._critic_optimizer, mse_loss(self._critic(state, action), wanted))
        self._descend(
            self._actor_optimizer, -self._critic(state, self._choose(self._actor, state)).mean()
        )
        for target, trained in (
            (self._target_actor, self._actor),
            (self._target_critic, self._critic),
        ):
            for slow, fast in zip(target.parameters(), trained.parameters(), strict=True):
                slow.data.lerp_(fast.data, self._learning.tracking)

    @staticmethod
    def _choose(actor: Network, state: Tensor) -> Tensor:
        return actor(state, state[:, :0]).sigmoid()

    @staticmethod
    def _descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
