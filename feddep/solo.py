"""A classifier that is trained on one graph, without anybody else."""

from feddep.evaluation import Evaluator
from feddep.graph import Graph
from feddep.history import History
from feddep.problem import Problem
from feddep.splits import Split
from feddep.training import Learner, new_optimizer


class SoloTrainer:
    """One model, one graph, one optimiser that lasts for the whole training."""

    def __init__(self, problem: Problem, graph: Graph, split: Split, name: str) -> None:
        """Set up the training.

        Args:
            problem: the run that this is part of; it gives setting, seed and the global test nodes.
            graph: the graph to train and validate on.
            split: its training and validation nodes.
            name: names the random streams.
        """
        self._problem = problem
        self._split = split
        self._model = problem.new_model()
        self._optimizer = new_optimizer(self._model, problem.setting)
        self._learner = Learner(graph, split.train, problem.setting, problem.seed, name, problem.device)
        self._evaluator = Evaluator(graph, problem.device)
        self.history = History()

    def round(self) -> None:
        """Train for as many epochs as a client does in a round, then validate on the own graph and test on the global."""
        for _ in range(self._problem.setting.local_epochs):
            loss = self._learner.epoch(self._model, self._optimizer)
        validation = self._evaluator.accuracy(self._model, self._split.val)
        self.history.record(self._model, loss, validation, self._problem.test(self._model))
