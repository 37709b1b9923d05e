"""A data owner D_i: it holds a subgraph and shows nobody anything but declared messages."""

from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import torch

from feddep.federation.boundary import Boundary, Payload, Schema, numbers
from feddep.graph.split import Split
from feddep.training.config import TrainingConfig
from feddep.training.evaluation import ClassCounts, CorrectCount
from feddep.training.evaluator import Evaluator
from feddep.training.learner import FullBatchLearner, Learner, new_optimizer
from feddep.utils.errors import ConfigError

REPORTS: dict[str, Schema] = {
    "training": {"nodes": (), "loss": ()},
    "validation": {"nodes": (), "correct": ()},
}
"""The single numbers that a client reports: how many nodes it counted, and its mean loss or its
correct answers.
"""
EXTRA = "extra"
"""The kind of message that carries :attr:`Update.extra`."""


@dataclass(frozen=True, eq=False)
class Update:
    """The message of a client after the local steps of a round.

    Attributes:
        client: its number.
        weights: its weights.
        nodes: its number of training nodes.
        loss: its mean training loss a node, in nats.
        extra: further tensors by name, of a method that declares them to the boundary; none for
            most.
    """

    client: int
    weights: Payload
    nodes: float
    loss: float
    extra: Payload = field(default_factory=dict)


class Client:
    """A client of FedAvg.

    What :meth:`update` returns has crossed the boundary, and what :meth:`load` is given crosses it
    on the way in; so does the report of :meth:`evaluate`.  All else stays here.  A method with
    another client overrides :meth:`train`, :meth:`weights` or :meth:`extra`.

    Attributes:
        number: the client's number i, from 0.
        model: the client's own copy of the classifier; weights come from the server.
        learner: trains a model on the client's subgraph G_i.
        evaluator: applies a model to the client's subgraph.
        split: its share of the split, in the subgraph's node ids; it validates on ``val``.
        setting: optimiser and number of local epochs.
    """

    def __init__(
        self,
        number: int,
        model: Any,
        learner: Learner | FullBatchLearner,
        evaluator: Evaluator,
        split: Split,
        setting: TrainingConfig,
        boundary: Boundary,
        kind: str = "model",
    ) -> None:
        """Set up a client; ``kind`` is the kind of messages that carry the model's weights across
        its ``boundary``.
        """
        self.number = number
        self.model = model
        self.learner = learner
        self.evaluator = evaluator
        self.split = split
        self.setting = setting
        self._boundary = boundary
        self._kind = kind
        self._optimizer: torch.optim.Optimizer | None = None

    def load(self, weights: Payload) -> None:
        """Take over the server's weights; those that it does not send stay as they are."""
        own = self.model.state_dict()
        for name, tensor in self._boundary.send(self.number, "down", self._kind, weights).items():
            own[name].copy_(tensor)

    def train(self) -> float:
        """The local steps of one round, the local epochs; returns the loss of the last epoch."""
        if self._optimizer is None or self.setting.optimizer_state == "fresh":
            self._optimizer = new_optimizer(self.model, self.setting)
        losses = [
            self.learner.epoch(self.model, self._optimizer)
            for _ in range(self.setting.local_epochs)
        ]
        return losses[-1]

    def weights(self) -> Payload:
        """Weights to send after the local steps: those that are declared to the
        boundary.
        """
        everything = self.model.state_dict()
        return {
            name: everything[name] for name in self._boundary.schema(self._kind, "up", self.number)
        }

    def extra(self) -> Payload:
        """Further tensors to send beside the weights; by default none, and so no message."""
        return {}

    def update(self) -> Update:
        """Do the local steps of a round, and send what came of them.

        Raises:
            ConfigError: if the local steps of a method of one's own return no loss.
        """
        loss = self.train()
        if not isinstance(loss, Real | torch.Tensor):
            raise ConfigError(
                f"{type(self).__name__}.train() returned {loss!r}; it returns the loss, a number"
            )
        weights = self.weights()
        weights = self._send(self._kind, weights) if weights else {}
        report = self._send("training", numbers(nodes=self.learner.size, loss=loss))
        extra = self.extra()
        return Update(
            self.number,
            weights,
            float(report["nodes"]),
            float(report["loss"]),
            self._send(EXTRA, extra) if extra else {},
        )

    def skip(self) -> None:
        """A round in which the client is absent: it has the server's weights and does nothing."""

    def evaluate(self, report: bool) -> tuple[CorrectCount, CorrectCount, ClassCounts]:
        """Apply the model as it is to the validation and test nodes of the subgraph
        (:meth:`feddep.training.evaluator.Evaluator.counts`).

        Where ``report`` is true, the validation count is sent.  Nothing else is: only the
        experimenter, who knows all labels, reads what is returned.
        """
        found = self.evaluator.counts(self.model, self.split, self.setting.metric)
        if report:
            correct, nodes = found[0]
            self._send("validation", numbers(nodes=nodes, correct=correct))
        return found

    def _send(self, kind: str, payload: Payload) -> Payload:
        return self._boundary.send(self.number, "up", kind, payload)
