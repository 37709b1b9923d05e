"""FedALA: a client begins a round with a mixture of its own and the server's upper layers (Zhang et
al., 2023, Algorithm 1).

With g what the server sent and l the client's weights of the round before, the p upper layers begin
at l + (g − l) ∘ W, and those below at g.  The elements of W, in [0, 1] and 1 at first, are learned
on a sample of the training nodes by the steps

    W ← W − η (∂L/∂θ) ∘ (g − l), cut to [0, 1]

of the loss L at the mixture θ: at first until the loss has settled, in later rounds one step.  A
step is on the whole sample and all its neighbours, without dropout.  The authors' code counts
tensors where the paper counts layers; its sample is a slice.
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from feddep.federation.boundary import Payload
from feddep.federation.client import Client
from feddep.methods.basic import fedavg
from feddep.methods.personalised import FedALAParameters
from feddep.methods.personalised.fedper import upper_weights
from feddep.training.task import RunResult, Task
from feddep.utils import seeding

SETTLED, RECENT, MOST = 0.1, 10, 100
"""W is first learned until the last 10 losses have a standard deviation below 0.1 (code), for at
most 100 steps (ours).
"""


class MixingClient(Client):
    """A client that mixes what it is sent with what it has."""

    def __init__(self, *arguments: Any, params: FedALAParameters, seed: int) -> None:
        """Set up a client; the first arguments are those of :class:`Client`."""
        super().__init__(*arguments)
        self.params = params
        self.rng = seeding.generator(seed, f"client{self.number}", "mixing")
        self.upper = list(upper_weights(self.model, params.mixed_layers).values())
        self.mixing: list[torch.Tensor] = []

    def load(self, weights: Payload) -> None:
        """Take over the server's weights, the upper layers mixed."""
        old = [weight.detach().clone() for weight in self.upper]
        super().load(weights)
        changes = [weight.detach() - own for weight, own in zip(self.upper, old, strict=True)]
        if len(self.split.train) and any(change.any() for change in changes):
            self.mix(old, changes)

    def mix(self, old: list[torch.Tensor], changes: list[torch.Tensor]) -> None:
        """Learn W, and leave the upper layers at l + (g − l) ∘ W; ``changes`` are g − l."""
        losses: list[float] = []
        steps = 1 if self.mixing else MOST
        self.mixing = self.mixing or [torch.ones_like(change) for change in changes]
        size = max(1, round(self.params.mixing_share * len(self.split.train)))
        nodes = torch.from_numpy(self.rng.choice(self.split.train, size, replace=False)).to(
            self.evaluator.labels.device
        )
        self.place(old, changes)
        while len(losses) < steps and (
            len(losses) <= RECENT or np.std(losses[-RECENT:]) >= SETTLED
        ):
            logits = self.model.full(self.evaluator.features, self.evaluator.adjacency)
            loss = cross_entropy(logits[nodes], self.evaluator.labels[nodes])
            losses.append(float(loss.detach()))
            gradients = torch.autograd.grad(loss, self.upper)
            self.mixing = [
                (w - self.params.mixing_rate * gradient * change).clamp(0, 1)
                for gradient, change, w in zip(gradients, changes, self.mixing, strict=True)
            ]
            self.place(old, changes)

    @torch.no_grad()
    def place(self, old: list[torch.Tensor], changes: list[torch.Tensor]) -> None:
        """Set the upper layers to l + (g − l) ∘ W."""
        for weight, own, change, w in zip(self.upper, old, changes, self.mixing, strict=True):
            weight.copy_(own + change * w)


def run(task: Task, parameters: FedALAParameters, steps: Any = None) -> RunResult:
    """FedAvg of mixing clients."""
    return fedavg.train_on(
        task, task.subgraphs(), partial(MixingClient, params=parameters, seed=task.seed)
    )
