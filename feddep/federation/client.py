"""A data owner D_i: it holds a subgraph and shows nobody anything but declared messages."""

from feddep.evaluation import Evaluator
from feddep.federation.boundary import Boundary, Payload, Schema, numbers
from feddep.graph import Graph
from feddep.nn.sage import GraphSAGE
from feddep.settings import Setting
from feddep.splits import Split
from feddep.training import Learner, new_optimizer

REPORTS: dict[str, Schema] = {
    "training": {"nodes": (), "loss": ()},
    "validation": {"nodes": (), "correct": ()},
}
"""The single numbers that a client reports: how many nodes it counted, and its mean loss or its correct answers."""


class Client:
    """A client of FedAvg.

    What its methods return has crossed the border; what they are given crosses it on the way in.  All else is private.
    """

    def __init__(
        self,
        number: int,
        graph: Graph,
        split: Split,
        model: GraphSAGE,
        setting: Setting,
        seed: int,
        boundary: Boundary,
        device: str = "cpu",
    ) -> None:
        """Set up a client.

        Args:
            number: the client's number i, from 0.
            graph: its subgraph G_i.
            split: its training and validation nodes, in the subgraph's node ids.
            model: the client's own copy of the classifier; weights come from the server.
            setting: how it trains.
            seed: the run's seed.
            boundary: its border.
            device: where it computes.
        """
        self.number = number
        self._split = split
        self._model = model
        self._setting = setting
        self._boundary = boundary
        self._learner = Learner(graph, split.train, setting, seed, f"client{number}", device)
        self._evaluator = Evaluator(graph, device)

    def load(self, weights: Payload) -> None:
        """Take over the server's weights."""
        self._model.load_state_dict(self._boundary.cross(self.number, "down", "model", weights))

    def train(self) -> tuple[Payload, Payload]:
        """Train for the local epochs of one round; returns the new weights and the report ``training``."""
        optimizer = new_optimizer(self._model, self._setting)
        losses = [self._learner.epoch(self._model, optimizer) for _ in range(self._setting.local_epochs)]
        report = numbers(nodes=len(self._split.train), loss=losses[-1])
        return self._send("model", self._model.state_dict()), self._send("training", report)

    def validate(self) -> Payload:
        """Apply the weights last loaded to the validation nodes of the subgraph; returns the report ``validation``."""
        correct = self._evaluator.correct(self._model, self._split.val)
        return self._send("validation", numbers(nodes=len(self._split.val), correct=correct))

    def _send(self, kind: str, payload: Payload) -> Payload:
        return self._boundary.cross(self.number, "up", kind, payload)
