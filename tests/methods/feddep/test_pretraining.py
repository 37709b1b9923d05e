import numpy as np
import pytest
import torch

from feddep.graph.graph import Graph
from feddep.graph.split import Split
from feddep.methods.feddep import PretrainingParameters, pretraining
from feddep.methods.feddep.pretraining import EmbeddingGNN, without_edges
from feddep.nn.sparse import graph_matrices
from feddep.training.config import TrainingConfig
from feddep.training.evaluator import Evaluator
from feddep.training.task import Task
from graphs import random_graph
from small_models import drawn

SETTING = TrainingConfig(batch_size=16, fanout=3, rounds=5, hidden_channels=8, dropout=0.0)
HOW = PretrainingParameters(depth=2, embedding=6, pretraining_epochs=3)


def pretrain(
    graph: Graph,
    train: np.ndarray,
    how: PretrainingParameters,
    setting: TrainingConfig,
    seed: int,
    number: int,
) -> torch.Tensor:
    """Embeddings of a client with these training nodes."""
    split = Split(train, train[:0], train[:0])
    task = Task("test", graph, split, None, pretraining.setting_of(how, setting), seed)
    return pretraining.pretrain(task, (graph, split), how, number)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_an_embedding_sees_as_many_hops_as_asked_for_and_no_more(depth):
    """Trained weights are held fixed, by no training at all, and the features of one end of a path
    are changed.
    """
    path = Graph.from_edges(np.array([(v, v + 1) for v in range(5)]), np.eye(6), np.zeros(6), 2)
    changed = Graph.from_edges(path.edges(), np.diag([9.0, 1, 1, 1, 1, 1]), path.labels, 2)
    how = HOW.replace(depth=depth, pretraining_epochs=0)
    graphs = [graph if depth else without_edges(graph) for graph in (path, changed)]
    before, after = (pretrain(graph, np.arange(6), how, SETTING, 2, 0) for graph in graphs)
    moved = (before != after).any(dim=1).tolist()
    assert moved[: depth + 1] == [True] * (depth + 1)
    assert not any(moved[depth + 1 :])


def test_embeddings_are_what_the_head_reads_and_lie_within_one():
    graph = random_graph(20, 40, seed=1)
    gnn = drawn(EmbeddingGNN(graph.num_features, 8, 6, graph.num_classes, 2, 0.0))
    evaluator = Evaluator(graph)
    inner = gnn.embed(*graph_matrices(graph)).detach()
    assert inner.shape == (20, 6)
    assert inner.abs().max() < 1
    torch.testing.assert_close(evaluator.logits(gnn), inner @ gnn.linear.weight.T + gnn.linear.bias)
    z = pretrain(graph, np.arange(20), HOW, SETTING, 0, 0)
    assert z.shape == (20, 6)
    assert z.abs().max() < 1
    assert not z.requires_grad
