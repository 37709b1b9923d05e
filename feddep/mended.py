"""Evaluation on a mended subgraph: as on any graph, but nodes carry embeddings that were generated for them."""

from typing import Any

import torch
from torch import Tensor

from feddep.evaluation import Evaluator
from feddep.graph import Graph
from feddep.nn.fused import FusedClassifier


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
        super().__init__(graph, device, model.aggregation)
        self._embeddings = None if embeddings is None else embeddings.to(device)

    @torch.no_grad()
    def logits(self, model: Any) -> Tensor:
        """Logits of all nodes, shape (n, C)."""
        return model.full(self._features, self._mean, self._embeddings)
