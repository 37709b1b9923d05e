"""A classifier that is trained on one graph, without anybody else."""

from typing import Any

from feddep.graph.graph import Graph
from feddep.graph.split import Split
from feddep.training.evaluator import Evaluator
from feddep.training.history import History, share
from feddep.training.learner import Learner, new_optimizer
from feddep.training.task import Task


class StandaloneTrainer:
    """One model, one graph, one optimiser that lasts for the whole training."""

    def __init__(
        self, task: Task, graph: Graph, split: Split, name: str, table: Any = None, evaluator: Evaluator | None = None
    ) -> None:
        """Set up training on ``graph``, with the nodes of ``split``; ``name`` names the random streams.

        ``table`` holds the inputs of nodes, as for :class:`feddep.training.learner.Learner`; by default, the ``evaluator`` is
        a plain one of the graph.
        """
        self._task = task
        self._split = split
        self._model = task.new_model()
        self._optimizer = new_optimizer(self._model, task.setting)
        self._learner = Learner(graph, split.train, task.setting, task.seed, name, task.device, table)
        self._evaluator = Evaluator(graph, task.device, self._model.aggregation) if evaluator is None else evaluator
        self.history = History()

    def round(self) -> None:
        """Train for as many epochs as a client does in a round, then validate on the own graph and test on the global."""
        for _ in range(self._task.setting.local_epochs):
            loss = self._learner.epoch(self._model, self._optimizer)
        validated, own = self._evaluator.correct(self._model, self._split.val, self._split.test)
        self.history.record(self._model, loss, share(validated, len(self._split.val)), *self._task.test(self._model))
        self.history.record_local(*[(own, len(self._split.test))] * 2)  # nobody sends it another model
