"""GraphSAGE against slow, obvious references and against PyG's own convolution."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from torch_geometric.nn import SAGEConv as PyGConv

from benchmarks.plain import PlainSAGE, blocks_of
from feddep.graph.graph import Graph
from feddep.graph.sampling import PAD, sample_trees
from feddep.nn.feature_table import FeatureTable
from feddep.nn.sage import GraphSAGE, SAGEConv
from feddep.training.evaluator import Evaluator
from graphs import graphs, random_graph
from small_models import drawn, edge_index


def new_model(graph: Graph, layers: int = 2, hidden: int = 5, dropout: float = 0.0) -> GraphSAGE:
    return drawn(GraphSAGE(graph.num_features, hidden, graph.num_classes, layers, dropout), 1)


def by_hand(
    model: GraphSAGE, x: np.ndarray, tree: np.ndarray, fanouts: tuple[int, ...]
) -> np.ndarray:
    """Logits of the root of one tree, one node and one neighbour at a time."""
    sizes = np.cumprod([1, *(1 + fanout for fanout in fanouts)])  # nodes of the tree after each hop

    def output(layer: int, at: int) -> np.ndarray:
        if layer < 0:
            return x[tree[at]]
        hop = len(fanouts) - 1 - layer
        children = [sizes[hop] + at * fanouts[hop] + j for j in range(fanouts[hop])]
        own, *drawn = [
            output(layer - 1, each) for each in [at, *(c for c in children if tree[c] != PAD)]
        ]
        rows = [np.maximum(each, 0) if layer else each for each in (own, *drawn)]
        mean = np.mean(rows[1:], axis=0) if drawn else np.zeros_like(own)
        convolution = model.convolutions[layer]
        return (
            np.concatenate([rows[0], mean]) @ convolution.weight.detach().numpy()
            + convolution.bias.detach().numpy()
        )

    return output(len(fanouts) - 1, 0)


@given(graphs(), st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(0, 2**16))
def test_mini_batch_forward_is_the_definition(graph, fanouts, seed):
    """Each layer averages over its own number of draws."""
    model = new_model(graph, len(fanouts))
    trees = sample_trees(
        graph, np.arange(graph.num_nodes), tuple(fanouts), np.random.default_rng(seed)
    )
    logits = model(trees, FeatureTable(graph.features))
    expected = [
        by_hand(model, graph.features.toarray(), tree, tuple(fanouts)) for tree in trees.nodes
    ]
    np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-4, atol=1e-5)


@given(graphs(), st.integers(1, 3))
def test_full_batch_forward_is_pyg(graph, layers):
    ours = new_model(graph, layers)
    theirs = PlainSAGE(graph.num_features, 5, graph.num_classes, layers, 0.0)
    theirs.copy_weights(ours)
    x = torch.from_numpy(graph.features.toarray())
    for k, convolution in enumerate(theirs.convolutions):
        assert isinstance(convolution, PyGConv)
        x = convolution(x.relu() if k else x, edge_index(graph))
    torch.testing.assert_close(Evaluator(graph).logits(ours), x.detach(), rtol=1e-4, atol=1e-5)


def test_the_training_step_is_that_of_the_plain_implementation():
    graph = random_graph(60, 150, features=20, seed=2)
    ours = new_model(graph, hidden=8)
    plain = PlainSAGE(graph.num_features, 8, graph.num_classes, 2, 0.0)
    plain.copy_weights(ours)
    roots = np.arange(40)
    trees = sample_trees(graph, roots, (3,) * 2, np.random.default_rng(0))
    labels = torch.from_numpy(graph.labels[roots])
    sources, blocks = blocks_of(trees)
    x = torch.from_numpy(graph.features.toarray())[torch.from_numpy(sources)]

    our_loss = cross_entropy(ours(trees, FeatureTable(graph.features)), labels)
    plain_loss = cross_entropy(plain(x, blocks), labels)
    our_loss.backward()
    plain_loss.backward()

    torch.testing.assert_close(our_loss, plain_loss)
    for our, their in zip(ours.convolutions, plain.convolutions, strict=True):
        own, neighbours = our.weight.grad.split(our.inputs)
        torch.testing.assert_close(own, their.lin_r.weight.grad.T)
        torch.testing.assert_close(neighbours, their.lin_l.weight.grad.T)
        torch.testing.assert_close(our.bias.grad, their.lin_l.bias.grad)


def test_initial_weights_have_the_spread_of_separate_linear_maps():
    convolution = drawn(SAGEConv(400, 50))
    assert convolution.weight.abs().max() <= 1 / 20
    assert convolution.weight.std().item() == pytest.approx(1 / 20 / 3**0.5, rel=0.02)
