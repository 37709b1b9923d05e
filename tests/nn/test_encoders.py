"""Encoders against PyG's layers, and their mini-batches against their full neighbourhoods."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch_geometric.nn import GATConv, GCNConv

from feddep.graph.graph import Graph, normalised_adjacency
from feddep.graph.sampling import PAD, SampledTrees, sample_trees
from feddep.methods.feddep.fused import FusedGCN, FusedSAGE
from feddep.methods.method import BUILT_IN_ENCODERS
from feddep.nn.encoder_names import ENCODERS
from feddep.nn.encoders import GAT, GCN, HEADS, new_encoder
from feddep.nn.feature_table import FeatureTable
from feddep.training.evaluator import Evaluator
from graphs import graphs, random_graph
from small_models import drawn, edge_index, full

HIDDEN = 2 * HEADS


def sizes(graph: Graph, layers: int = 2) -> tuple[int, int, int, int, float]:
    return graph.num_features, HIDDEN, graph.num_classes, layers, 0.0


def with_biases(model: nn.Module) -> nn.Module:
    """The model with biases that are not zero, as they are at first."""
    with torch.no_grad():
        for layer in model.layers:
            layer.bias.normal_(generator=torch.Generator().manual_seed(2))
    return model


def gcn_layer(layer) -> nn.Module:
    theirs = GCNConv(*layer.weight.shape)
    theirs.load_state_dict({"lin.weight": layer.weight.T, "bias": layer.bias})
    return theirs


def gat_layer(layer) -> nn.Module:
    inputs, outputs = layer.weight.shape
    theirs = GATConv(inputs, outputs // layer.heads, layer.heads)
    state = {
        "lin.weight": layer.weight.T,
        "bias": layer.bias,
        "att_src": layer.source[None],
        "att_dst": layer.target[None],
    }
    theirs.load_state_dict(state)
    return theirs


@given(graphs(), st.integers(1, 3), st.sampled_from([(GCN, gcn_layer), (GAT, gat_layer)]))
def test_a_gcn_and_a_gat_are_pygs(graph: Graph, layers: int, kinds: tuple):
    ours, theirs = kinds
    model = with_biases(drawn(ours(*sizes(graph, layers)), 1))
    hidden = torch.from_numpy(graph.features.toarray())
    for k, layer in enumerate(model.layers):
        hidden = theirs(layer)(hidden.relu() if k else hidden, edge_index(graph))
    torch.testing.assert_close(full(model, graph), hidden, rtol=1e-4, atol=1e-5)


def test_an_mlp_sees_no_edges():
    graph = random_graph(12, 30)
    model = with_biases(drawn(new_encoder("mlp", *sizes(graph)), 1))
    first, last = model.layers
    hidden = (torch.from_numpy(graph.features.toarray()) @ first.weight + first.bias).relu()
    torch.testing.assert_close(full(model, graph), hidden @ last.weight + last.bias)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_smoothed_classifiers_are_their_equations_node_by_node(layers: int):
    graph = random_graph(12, 30)
    hops = [torch.from_numpy(graph.features.toarray())]
    for _ in range(layers):
        hops.append(torch.from_numpy(normalised_adjacency(graph) @ hops[-1].numpy()))
    linear = with_biases(drawn(new_encoder("sgc", *sizes(graph, layers)), 1))
    (only,) = linear.layers
    torch.testing.assert_close(full(linear, graph), hops[-1] @ only.weight + only.bias)
    model = with_biases(drawn(new_encoder("gamlp", *sizes(graph, layers)), 1))
    first, *others = model.layers
    a = first.attention.T.flatten()
    for v, logits in enumerate(full(model, graph)):
        scores = [
            (a @ torch.cat([*(each[v] for each in hops), x[v]]) + first.attention_bias).sigmoid()
            for x in hops
        ]
        weights = torch.cat(scores).softmax(dim=0)
        hidden = sum(w * x[v] for w, x in zip(weights, hops, strict=True)) @ first.weight
        hidden = hidden + first.bias
        for layer in others:
            hidden = hidden.relu() @ layer.weight + layer.bias
        torch.testing.assert_close(logits, hidden, rtol=1e-4, atol=1e-5)


def every_neighbour_once(graph: Graph, degree: int, layers: int) -> SampledTrees:
    """Trees of a graph whose nodes all have this degree, with every neighbour in them once."""
    nodes = np.arange(graph.num_nodes, dtype=np.int32)[:, None]
    neighbours = graph.indices.reshape(graph.num_nodes, degree)
    for _ in range(layers):
        nodes = np.concatenate(
            [nodes, neighbours[nodes].reshape(len(nodes), -1)], axis=1, dtype=np.int32
        )
    return SampledTrees(nodes, (degree,) * layers)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_mini_batch_with_every_neighbour_is_the_full_neighbourhood(name: str, layers: int):
    ring = random_graph(9, 1)
    edges = [(v, (v + step) % 9) for v in range(9) for step in (1, 2)]
    ring = Graph.from_edges(np.array(edges), ring.features, ring.labels, ring.num_classes)
    model = drawn(new_encoder(name, *sizes(ring, layers)), 1)
    logits = model(
        every_neighbour_once(ring, 4, layers), FeatureTable(ring.features, "cpu", ring.degrees)
    )
    torch.testing.assert_close(logits, full(model, ring), rtol=1e-4, atol=1e-5)


def test_a_sampled_gcn_layer_is_right_in_the_mean():
    graph = random_graph(12, 40, seed=3)
    model = drawn(GCN(*sizes(graph, 1)), 1)
    table = FeatureTable(graph.features, "cpu", graph.degrees)
    roots = np.repeat(np.arange(12), 4000)
    logits = (
        model(sample_trees(graph, roots, (2,), np.random.default_rng(0)), table)
        .detach()
        .view(12, 4000, -1)
    )
    error = logits.std(dim=1) / 4000**0.5
    assert ((logits.mean(dim=1) - full(model, graph).detach()).abs() <= 5 * error + 1e-5).all()


@pytest.mark.parametrize("name", ["gcn", "gat", "sage_selfloop"])
def test_nobody_and_repeated_draws_count_for_nothing(name: str):
    graph = Graph.from_edges(np.array([(0, 1)]), np.eye(3), np.zeros(3), 2)
    model = drawn(new_encoder(name, *sizes(graph, 1)), 1)
    nodes = np.array([[0, 1, 1, 1], [2, PAD, PAD, PAD]], dtype=np.int32)
    logits = model(SampledTrees(nodes, (3,)), FeatureTable(graph.features, "cpu", graph.degrees))
    torch.testing.assert_close(logits, full(model, graph)[[0, 2]], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", BUILT_IN_ENCODERS)
@pytest.mark.parametrize("layers", [1, 3])
def test_the_last_layer_reads_the_embeddings(name: str, layers: int):
    graph = random_graph(20, 40)
    model = drawn(new_encoder(name, *sizes(graph, layers)), 1)
    inputs = Evaluator(graph, aggregation=model.aggregation)
    hidden = model.body(inputs.features, inputs.adjacency)
    if layers > 1:
        assert hidden.shape == (20, model.output_widths[-2])
        assert (hidden >= 0).all()
    assert torch.equal(model.head(hidden, inputs.adjacency), inputs.logits(model))
    assert model.output_widths[-1] == graph.num_classes


@pytest.mark.parametrize("z", [None, torch.randn(30, 4)], ids=["real", "mended"])
@pytest.mark.parametrize("made", [FusedGCN, FusedSAGE])
def test_a_large_graph_is_classified_some_columns_at_a_time(
    made: type, z: torch.Tensor | None, monkeypatch: pytest.MonkeyPatch
):
    graph = random_graph(30, 80)
    model = made(graph.num_features, 4, 40, graph.num_classes, 2, 0.5)
    for weight in model.parameters():
        nn.init.normal_(weight)
    at_once = full(model, graph, z).detach()
    monkeypatch.setattr("feddep.nn.layered._MANY", 30 * 40 - 1)
    monkeypatch.setattr("feddep.nn.layered.LayeredClassifier.head", None)
    with torch.no_grad():
        torch.testing.assert_close(full(model, graph, z), at_once, rtol=1e-5, atol=1e-5)
