"""A data owner D_i: it holds a subgraph and shows nobody anything but declared messages."""

from torch import nn

from feddep.federation.boundary import Boundary, Payload, Schema, numbers
from feddep.graph.split import Split
from feddep.training.config import TrainingConfig
from feddep.training.evaluator import Evaluator
from feddep.training.learner import Learner, new_optimizer

REPORTS: dict[str, Schema] = {
    "training": {"nodes": (), "loss": ()},
    "validation": {"nodes": (), "correct": ()},
}
"""The single numbers that a client reports: how many nodes it counted, and its mean loss or its correct answers."""


class Client:
    """A client of FedAvg.

    What its methods return has crossed the boundary; what they are given crosses it on the way in.  All else is private.

    Attributes:
        number: the client's number i, from 0.
        local_test: how many of its test nodes it has classified right when it last validated, and of how many.  Nothing is sent:
            only the experimenter, who knows the labels, reads it.
    """

    def __init__(
        self,
        number: int,
        model: nn.Module,
        learner: Learner,
        evaluator: Evaluator,
        split: Split,
        setting: TrainingConfig,
        boundary: Boundary,
        kind: str = "model",
    ) -> None:
        """Set up a client.

        Args:
            number: the client's number i, from 0.
            model: the client's own copy of the classifier; weights come from the server.
            learner: trains a model on the client's subgraph G_i.
            evaluator: applies a model to the client's subgraph.
            split: its share of the split, in the subgraph's node ids; it validates on ``val``.
            setting: optimiser and number of local epochs.
            boundary: its boundary.
            kind: the kind of messages that carry the model's weights.
        """
        self.number = number
        self._model = model
        self._learner = learner
        self._evaluator = evaluator
        self._split = split
        self.local_test = (0, len(split.test))
        self._setting = setting
        self._boundary = boundary
        self._kind = kind

    def load(self, weights: Payload) -> None:
        """Take over the server's weights."""
        self._model.load_state_dict(self._boundary.send(self.number, "down", self._kind, weights))

    def train(self) -> tuple[Payload, Payload]:
        """Train for the local epochs of one round; returns the new weights and the report ``training``."""
        optimizer = new_optimizer(self._model, self._setting)
        losses = [self._learner.epoch(self._model, optimizer) for _ in range(self._setting.local_epochs)]
        report = numbers(nodes=self._learner.size, loss=losses[-1])
        return self._send(self._kind, self._model.state_dict()), self._send("training", report)

    def validate(self) -> Payload:
        """Apply the weights last loaded to the validation nodes of the subgraph; returns the report ``validation``."""
        correct, own = self._evaluator.correct(self._model, self._split.val, self._split.test)
        self.local_test = (own, len(self._split.test))
        return self._send("validation", numbers(nodes=len(self._split.val), correct=correct))

    def _send(self, kind: str, payload: Payload) -> Payload:
        return self._boundary.send(self.number, "up", kind, payload)
