"""A classifier that is trained on one graph, without anybody else."""

from typing import Any

from feddep.graph.graph import Graph
from feddep.graph.split import Split
from feddep.training.evaluation import ClassCounts, CorrectCount
from feddep.training.evaluator import Evaluator
from feddep.training.learner import new_learner, new_optimizer
from feddep.training.task import Task


class StandaloneTrainer:
    """One model, one graph, one optimiser that lasts for the whole training."""

    def __init__(
        self,
        task: Task,
        graph: Graph,
        split: Split,
        name: str,
        table: Any = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        """Set up training on ``graph``, with the nodes of ``split``; ``name`` names the random
        streams.

        ``table`` holds the inputs of nodes, as for :class:`feddep.training.learner.Learner`; by
        default, the ``evaluator`` is a plain one of the graph.
        """
        self._setting = task.setting
        self._split = split
        self.model = task.new_model()
        self._optimizer = new_optimizer(self.model, task.setting)
        self._evaluator = (
            Evaluator(graph, task.device, self.model.aggregation)
            if evaluator is None
            else evaluator
        )
        self.learner = new_learner(
            graph, split.train, task.setting, task.seed, name, task.device, self._evaluator, table
        )

    def train(self) -> float:
        """Train for as many epochs as a client does in a round; returns the loss of the last."""
        losses = [
            self.learner.epoch(self.model, self._optimizer)
            for _ in range(self._setting.local_epochs)
        ]
        return losses[-1]

    def counts(self) -> tuple[CorrectCount, CorrectCount, ClassCounts]:
        """How well the model classifies its own validation and test nodes
        (:meth:`feddep.training.evaluator.Evaluator.counts`).
        """
        return self._evaluator.counts(self.model, self._split, self._setting.metric)
