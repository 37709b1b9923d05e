"""GraphSAGE against slow, obvious references and against PyG's own convolution."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from torch_geometric.nn import SAGEConv as PyGConv

from benchmarks.plain import PlainSAGE, blocks_of
from divided import random_task, trained
from feddep.graph.graph import Graph, mean_adjacency
from feddep.graph.sampling import PAD, sample_trees
from feddep.nn.feature_table import FeatureTable
from feddep.nn.sage import GraphSAGE, SAGEConv
from feddep.nn.sparse import SparseMatrix
from feddep.training.evaluator import Evaluator
from graphs import graphs, random_graph, star, tree_width


def new_model(graph: Graph, layers: int = 2, hidden: int = 5, dropout: float = 0.0) -> GraphSAGE:
    model = GraphSAGE(graph.num_features, hidden, graph.num_classes, layers, dropout)
    model.reset_parameters(torch.Generator().manual_seed(1))
    return model


def by_hand(model: GraphSAGE, x: np.ndarray, tree: np.ndarray, fanout: int, layer: int, place: int) -> np.ndarray:
    """Output of ``layer`` for one place of one tree, one node and one neighbour at a time."""
    if layer == -1:
        return x[tree[place]]
    inner = tree_width(fanout, len(model.convolutions) - 1 - layer)
    children = [inner + place * fanout + j for j in range(fanout)]

    def input_of(child: int) -> np.ndarray:
        value = by_hand(model, x, tree, fanout, layer - 1, child)
        return np.maximum(value, 0) if layer else value

    own = input_of(place)
    drawn = [input_of(child) for child in children if tree[child] != PAD]
    mean = np.mean(drawn, axis=0) if drawn else np.zeros_like(own)
    convolution = model.convolutions[layer]
    return np.concatenate([own, mean]) @ convolution.weight.detach().numpy() + convolution.bias.detach().numpy()


@given(graphs(), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**16))
def test_mini_batch_forward_is_the_definition(graph, layers, fanout, seed):
    model = new_model(graph, layers)
    trees = sample_trees(graph, np.arange(graph.num_nodes), (fanout,) * layers, np.random.default_rng(seed))
    logits = model(trees, FeatureTable(graph.features))
    x = graph.features.toarray()
    expected = [by_hand(model, x, tree, fanout, layers - 1, 0) for tree in trees.nodes]
    np.testing.assert_allclose(logits.detach().numpy(), expected, rtol=1e-4, atol=1e-5)


@given(graphs(), st.integers(1, 3))
def test_full_batch_forward_is_pyg(graph, layers):
    ours = new_model(graph, layers)
    theirs = PlainSAGE(graph.num_features, 5, graph.num_classes, layers, 0.0)
    theirs.copy_weights(ours)
    edges = torch.from_numpy(np.concatenate([graph.edges(), graph.edges()[:, ::-1]]).T.copy())
    x = torch.from_numpy(graph.features.toarray())
    for k, convolution in enumerate(theirs.convolutions):
        assert isinstance(convolution, PyGConv)
        x = convolution(x.relu() if k else x, edges)
    torch.testing.assert_close(Evaluator(graph).logits(ours), x.detach(), rtol=1e-4, atol=1e-5)


def test_where_every_node_has_one_neighbour_sampling_changes_nothing():
    pairs = np.array([(0, 1), (2, 3), (4, 5)])
    graph = Graph.from_edges(pairs, np.random.default_rng(0).random((7, 4)), np.zeros(7), 2)  # node 6 is isolated
    model = new_model(graph)
    trees = sample_trees(graph, np.arange(7), (3,) * 2, np.random.default_rng(0))
    torch.testing.assert_close(model(trees, FeatureTable(graph.features)), Evaluator(graph).logits(model))


def test_the_mean_over_draws_converges_to_the_full_neighbourhood():
    graph = star(6)
    model = new_model(graph, layers=1)
    trees = sample_trees(graph, np.zeros(20_000, dtype=np.int64), (2,) * 1, np.random.default_rng(0))
    mean = model(trees, FeatureTable(graph.features)).mean(dim=0)
    torch.testing.assert_close(mean, Evaluator(graph).logits(model)[0], atol=5e-3, rtol=0)


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


def test_prediction_depends_on_two_hops_and_no_more():
    path = Graph.from_edges(np.array([(0, 1), (1, 2), (2, 3)]), np.eye(4), np.zeros(4), 2)
    model = new_model(path)
    before = Evaluator(path).logits(model)
    changed = path.features.tolil()
    changed[3] = 7
    after = Evaluator(Graph.from_edges(path.edges(), changed.tocsr(), path.labels, 2)).logits(model)
    moved = (before - after).abs().sum(dim=1) > 0
    assert moved.tolist() == [False, True, True, True]


def test_dropout_is_for_training_and_follows_its_generator():
    graph = random_graph(20, 40, seed=3)
    model = new_model(graph, dropout=0.5)
    table, trees = FeatureTable(graph.features), sample_trees(graph, np.arange(20), (3,) * 2, np.random.default_rng(0))
    first, again, other = (model(trees, table, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(model(trees, table), model(trees, table))


def test_initial_weights_have_the_spread_of_separate_linear_maps():
    convolution = SAGEConv(400, 50)
    convolution.reset_parameters(torch.Generator().manual_seed(0))
    assert convolution.weight.abs().max() <= 1 / 20
    assert convolution.weight.std().item() == pytest.approx(1 / 20 / 3**0.5, rel=0.02)


def test_mean_adjacency_of_an_isolated_node_is_empty():
    graph = Graph.from_edges(np.array([(0, 1)]), np.ones((3, 1)), np.zeros(3), 1)
    assert (SparseMatrix.from_scipy(mean_adjacency(graph)) @ torch.eye(3)).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def layerwise_by_hand(model, x, graph_of_place, layer, place):
    """Output of ``layer`` at a place of a tree that is given as place → (node, drawn places by layer)."""
    node, drawn = graph_of_place[place]
    if layer < 0:
        return x[node]

    def inputs(at):
        value = layerwise_by_hand(model, x, graph_of_place, layer - 1, at)
        return np.maximum(value, 0) if layer else value

    rows = [inputs(at) for at in drawn[layer] if graph_of_place[at][0] != PAD]
    own = inputs(place)
    convolution = model.convolutions[layer]
    joined = np.concatenate([own, np.mean(rows, axis=0) if rows else np.zeros_like(own)])
    return joined @ convolution.weight.detach().numpy() + convolution.bias.detach().numpy()


@pytest.mark.parametrize("fanouts", [(2,), (1, 3), (3, 1), (2, 1, 3)])
def test_each_layer_averages_over_its_own_number_of_draws(fanouts):
    task = random_task(layers=len(fanouts))
    model = trained(task)
    trees = sample_trees(task.graph, np.arange(24), fanouts, np.random.default_rng(0))
    logits = model(trees, FeatureTable(task.graph.features)).detach().numpy()
    x = task.graph.features.toarray()
    for tree, row in zip(trees.nodes, logits, strict=True):
        places, drawn = 1, {place: {} for place in range(len(tree))}
        for layer, fanout in zip(reversed(range(len(fanouts))), fanouts, strict=True):
            for place in range(places):
                drawn[place][layer] = [places + place * fanout + j for j in range(fanout)]
            places *= 1 + fanout
        at = {place: (tree[place], drawn[place]) for place in range(len(tree))}
        np.testing.assert_allclose(row, layerwise_by_hand(model, x, at, len(fanouts) - 1, 0), rtol=1e-4, atol=1e-5)
