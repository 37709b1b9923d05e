"""Training and evaluation on a mended subgraph: as on any graph, but nodes carry embeddings that were generated for them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep.evaluation import Evaluator
from feddep.graph import Graph
from feddep.nn.fused import FusedClassifier, MendedTable
from feddep.nn.sparse import SparseMatrix
from feddep.settings import Setting
from feddep.training import Learner


class MendedLearner:
    """Trains an embedding-fused classifier on a mended subgraph; its draws are those that FedAvg's learner would make."""

    def __init__(
        self, graph: Graph, embeddings: Tensor, nodes: np.ndarray, setting: Setting, seed: int, name: str, device: str = "cpu"
    ) -> None:
        """Prepare for training.

        Args:
            graph: the client's subgraph.
            embeddings: z̄_v of its nodes, shape (n, d_z).
            nodes: training nodes.
            setting: as for :class:`feddep.training.Learner`, like the remaining arguments.
        """
        self._learner = Learner(graph, nodes, setting, seed, name, device)
        self._table = MendedTable(graph.features, embeddings.to(device), setting.fanout)

    @property
    def size(self) -> int:
        """Number of training nodes."""
        return self._learner.size

    def epoch(self, model: FusedClassifier, optimizer: torch.optim.Optimizer) -> float:
        """Visit every training node once; return the mean loss a node, in nats."""

        def with_embeddings(trees: np.ndarray, _features: Any, generator: torch.Generator) -> Tensor:
            return model(trees, self._table, generator)

        classify: Any = with_embeddings
        return self._learner.epoch(classify, optimizer)


class MendedEvaluator(Evaluator):
    """Applies an embedding-fused classifier to all nodes of a graph at once."""

    def __init__(self, graph: Graph, model: FusedClassifier, embeddings: Tensor | None = None, device: str = "cpu") -> None:
        """Prepare the inputs.

        Args:
            graph: the graph.
            model: the layout of the classifiers to come, which says how neighbours are aggregated.
            embeddings: z̄_v of the nodes, shape (n, d_z); none for a graph that is not mended, such as the global graph.
            device: where tensors live.
        """
        super().__init__(graph, device)
        self._aggregate = SparseMatrix.from_scipy(model.aggregation(graph), device)
        self._embeddings = None if embeddings is None else embeddings.to(device)

    @torch.no_grad()
    def logits(self, model: Any) -> Tensor:
        """Logits of all nodes, shape (n, C)."""
        return model.full(self._features, self._aggregate, self._embeddings)
