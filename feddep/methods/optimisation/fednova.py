"""FedNova: clients' changes count by their mean a step (Wang et al., NeurIPS 2020).

With p_k client k's share in the mean of FedAvg and τ_k its number of local steps, the server takes

    w ← w + (Σ_k p_k τ_k) Σ_k p_k (w_k − w) / τ_k

where FedAvg has w + Σ_k p_k (w_k − w).  That is the paper's for plain SGD.  Where all τ_k are the
same, as on full batches, it is FedAvg, which a notice says.
"""

import warnings
from collections.abc import Sequence
from typing import Any

from feddep.federation.boundary import Payload, numbers
from feddep.federation.client import Client, Update
from feddep.federation.server import Server, weighted_mean
from feddep.methods.basic import fedavg
from feddep.training.task import RunResult, Task
from feddep.utils.errors import ConfigError, Notice


class NovaClient(Client):
    """A client that tells its number of steps."""

    def extra(self) -> Payload:
        """τ_k."""
        return numbers(steps=self.setting.local_epochs * self.learner.steps_per_epoch)


class NovaServer(Server):
    """A server that normalises changes by steps; clients without a step have changed nothing."""

    def aggregate(self, updates: Sequence[Update]) -> None:
        steps = {float(update.extra["steps"]) for update in updates}
        if len(steps) == 1:
            notice = f"fednova: all clients take {steps.pop():g} local steps, so that it is FedAvg"
            warnings.warn(Notice(notice), stacklevel=2)
            super().aggregate(updates)
            return
        moved = [update for update in updates if update.extra["steps"]]
        taus = [float(update.extra["steps"]) for update in moved]
        shares, total = self.shares(moved), sum(self.shares(updates))
        effective = sum(p * tau for p, tau in zip(shares, taus, strict=True)) / total
        scaled = [p / tau for p, tau in zip(shares, taus, strict=True)]
        factor = effective * sum(scaled) / total
        mean = weighted_mean([update.weights for update in moved], scaled)
        self.weights = {name: w + factor * (mean[name] - w) for name, w in self.weights.items()}


def run(task: Task, parameters: Any = None, steps: Any = None) -> RunResult:
    """FedAvg of changes a step.

    Raises:
        ConfigError: if clients are not trained by plain SGD, whose steps alone count the same.
    """
    if task.setting.optimizer != "sgd":
        raise ConfigError(
            f"fednova needs optimizer sgd (key settings), but it is {task.setting.optimizer}"
        )
    return fedavg.train_on(task, task.subgraphs(), NovaClient, NovaServer, extra={"steps": ()})
