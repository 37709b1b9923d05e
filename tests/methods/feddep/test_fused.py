"""Embedding-fused graph convolution against its equation, node by node, and the paper's two statements on it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddep.graph.graph import Graph
from feddep.graph.sampling import PAD, SampledTrees, sample_trees
from feddep.methods.feddep.classifier import MendedEvaluator
from feddep.methods.feddep.fused import FusedClassifier, FusedGNN, FusedLayer, MendedTable, fused_classifier
from feddep.nn.encoders import GAT, HEADS, new_encoder
from feddep.nn.feature_table import FeatureTable
from feddep.nn.sage import GraphSAGE
from feddep.nn.selfloop import SelfLoopSAGE
from feddep.nn.sparse import SparseMatrix
from feddep.training.evaluator import Evaluator
from feddep.utils.errors import ConfigError
from graphs import graphs, random_graph, star, tree_width

WIDTH = 3
"""Width d_z of the embeddings here."""
HIDDEN = 2 * HEADS


def sizes(graph: Graph, layers: int = 2, dropout: float = 0.0) -> tuple[int, int, int, int, float]:
    return graph.num_features, HIDDEN, graph.num_classes, layers, dropout


def new_model(graph: Graph, layout: str, layers: int = 2, dropout: float = 0.0, encoder: str = "sage") -> FusedClassifier:
    features, *others = sizes(graph, layers, dropout)
    model = fused_classifier(layout, features, WIDTH, *others, encoder=encoder)
    model.reset_parameters(torch.Generator().manual_seed(1))
    return model


def full(model, graph: Graph, *more: torch.Tensor) -> torch.Tensor:
    return model.full(SparseMatrix.from_scipy(graph.features), SparseMatrix.from_scipy(model.aggregation(graph)), *more)


def embeddings_of(graph: Graph, seed: int = 0) -> torch.Tensor:
    return torch.randn(graph.num_nodes, WIDTH, generator=torch.Generator().manual_seed(seed))


def matrices(model: FusedGNN) -> list[np.ndarray]:
    """W^(0) … W^(K), each of shape (outputs, inputs + d_z), as the paper writes them."""
    return [layer.weight.detach().numpy().T for layer in model.layers]


def equation(model: FusedGNN, graph: Graph, z: np.ndarray) -> np.ndarray:
    """The paper's equations for all nodes, one node after the other, with the closed neighbourhood G¹(v) = {v} ∪ N(v)."""
    weights, x = matrices(model), graph.features.toarray()
    h = [np.maximum(weights[0] @ np.concatenate([x[v], z[v]]), 0) for v in range(graph.num_nodes)]
    for k, w in enumerate(weights[1:], start=1):
        after = []
        for v in range(graph.num_nodes):
            ego = [v, *graph.indices[graph.indptr[v] : graph.indptr[v + 1]]]
            after.append(w @ np.concatenate([np.mean([h[u] for u in ego], axis=0), z[v]]))
        h = after if k == len(weights) - 1 else [np.maximum(row, 0) for row in after]
    return np.array(h)


def equation_on_tree(
    model: FusedGNN, graph: Graph, z: np.ndarray, tree: np.ndarray, fanout: int, layer: int, at: int
) -> np.ndarray:
    """The same for one node of a sampled tree; drawn neighbours are a set, its members' subtrees are averaged."""
    weights, node = matrices(model), tree[at]
    last = len(weights) - 1
    if layer == 0:
        return np.maximum(weights[0] @ np.concatenate([graph.features[node].toarray()[0], z[node]]), 0)
    inner = tree_width(fanout, last - layer)
    children = [inner + at * fanout + j for j in range(fanout)]
    members = [equation_on_tree(model, graph, z, tree, fanout, layer - 1, at)]
    for neighbour in {tree[child] for child in children} - {PAD}:
        copies = [child for child in children if tree[child] == neighbour]
        members.append(np.mean([equation_on_tree(model, graph, z, tree, fanout, layer - 1, copy) for copy in copies], axis=0))
    out = weights[layer] @ np.concatenate([np.mean(members, axis=0), z[node]])
    return out if layer == last else np.maximum(out, 0)


@given(graphs(), st.integers(1, 3), st.integers(0, 2**16))
def test_full_batch_is_the_equation(graph, layers, seed):
    model, z = new_model(graph, "paper", layers), embeddings_of(graph, seed)
    logits = MendedEvaluator(graph, model, z).logits(model)
    np.testing.assert_allclose(logits, equation(model, graph, z.numpy()), rtol=1e-4, atol=1e-5)


@given(graphs(), st.integers(1, 2), st.integers(1, 3), st.integers(0, 2**16))
def test_mini_batch_is_the_equation_on_the_drawn_neighbours(graph, layers, fanout, seed):
    model, z = new_model(graph, "paper", layers), embeddings_of(graph, seed)
    trees = sample_trees(graph, np.arange(graph.num_nodes), (fanout,) * layers, np.random.default_rng(seed))
    logits = model(trees, MendedTable(graph.features, z))
    expected = [equation_on_tree(model, graph, z.numpy(), tree, fanout, layers, 0) for tree in trees.nodes]
    np.testing.assert_allclose(logits.detach(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", ["paper", "authors"])
def test_where_every_node_has_one_neighbour_sampling_changes_nothing(layout):
    pairs = np.array([(0, 1), (2, 3), (4, 5)])
    graph = Graph.from_edges(pairs, np.random.default_rng(0).random((7, 4)), np.zeros(7), 2)  # node 6 is isolated
    model, z = new_model(graph, layout), embeddings_of(graph)
    trees = sample_trees(graph, np.arange(7), (3,) * 2, np.random.default_rng(0))
    torch.testing.assert_close(model(trees, MendedTable(graph.features, z)), MendedEvaluator(graph, model, z).logits(model))


def test_where_all_neighbours_are_drawn_sampling_changes_nothing():
    graph = star(3)
    model, z = new_model(graph, "paper", layers=1), embeddings_of(graph)
    tree = SampledTrees(np.array([[1, 0, 0]], dtype=np.int32), (2,))  # a leaf has one neighbour, drawn twice: it counts once
    logits = model(tree, MendedTable(graph.features, z))
    torch.testing.assert_close(logits[0], MendedEvaluator(graph, model, z).logits(model)[1])


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**16))
def test_statement_3_1_a_layer_is_the_sum_of_two_separately_weighted_parts(inputs, outputs, seed):
    generator = torch.Generator().manual_seed(seed)
    layer = FusedLayer(inputs, WIDTH, outputs)
    layer.reset_parameters(generator)
    x, z = torch.randn(4, inputs, generator=generator), torch.randn(4, WIDTH, generator=generator)
    of_x, of_z = layer.weight[:inputs], layer.weight[inputs:]
    torch.testing.assert_close(layer(x, z), x @ of_x + z @ of_z)
    torch.testing.assert_close(layer(x, z), torch.cat([x, z], dim=1) @ layer.weight)  # the equation's W · [x̄ ‖ z̄]
    assert torch.equal(layer(x, None), x @ of_x)

    before = layer(x, torch.zeros_like(z))
    with torch.no_grad():
        of_z.mul_(2)
    assert torch.equal(layer(x, torch.zeros_like(z)), before)  # the weights of z̄ touch nothing but z̄


@pytest.mark.parametrize(("hops", "layers"), [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("layout", ["paper", "authors"])
def test_statement_3_2_a_prediction_depends_on_inputs_k_plus_l_hops_away_and_no_further(layout, layers, hops):
    """K layers on a path whose nodes carry L-hop embeddings: node 0 sees node K + L and not node K + L + 1.

    The authors' layout has no W^(0) to take z̄ in before the first aggregation, and so sees one hop less.
    """
    reach = layers + hops - (layout == "authors")
    nodes = layers + hops + 2
    path = Graph.from_edges(np.array([(v, v + 1) for v in range(nodes - 1)]), np.eye(nodes), np.zeros(nodes), 2)
    encoder = GraphSAGE(nodes, 4, WIDTH, hops, 0.0)
    model = new_model(path, layout, layers)
    with torch.no_grad():  # positive weights, so that no ReLU hides a dependence
        for parameter in (*encoder.parameters(), *model.parameters()):
            parameter.copy_(torch.rand(parameter.shape, generator=torch.Generator().manual_seed(3)) + 0.1)

    def predict(features: np.ndarray) -> torch.Tensor:
        graph = Graph.from_edges(path.edges(), features, path.labels, 2)
        z = Evaluator(graph).logits(encoder)
        return MendedEvaluator(graph, model, z).logits(model)[0]

    reference = predict(np.eye(nodes))
    for distance in range(nodes):
        changed = np.eye(nodes)
        changed[distance] += 1
        moved = not torch.allclose(predict(changed), reference, rtol=1e-5)
        assert moved == (distance <= reach), distance


def test_without_embeddings_the_prediction_ends_k_hops_away():
    path = Graph.from_edges(np.array([(0, 1), (1, 2), (2, 3)]), np.eye(4), np.zeros(4), 2)
    model = new_model(path, "paper")
    changed = Graph.from_edges(path.edges(), np.diag([1.0, 1, 1, 7]), path.labels, 2)
    before, after = (MendedEvaluator(graph, model).logits(model) for graph in (path, changed))
    assert torch.equal(before[0], after[0])
    assert not torch.equal(before[1], after[1])


@pytest.mark.parametrize("layout", ["paper", "authors"])
def test_no_embeddings_are_zero_embeddings(layout):
    graph = random_graph(20, 40, seed=3)
    model = new_model(graph, layout)
    zero = torch.zeros(20, WIDTH)
    torch.testing.assert_close(MendedEvaluator(graph, model).logits(model), MendedEvaluator(graph, model, zero).logits(model))


@given(graphs(), st.integers(1, 3), st.integers(0, 2**16))
def test_the_authors_layout_is_graphsage_plus_a_linear_map(graph, layers, seed):
    """With the same generator the weights are GraphSAGE's; with z̄ = 0 so is every number, dropout included."""
    model, sage = new_model(graph, "authors", layers, dropout=0.5), GraphSAGE(*sizes(graph, layers, 0.5))
    sage.reset_parameters(torch.Generator().manual_seed(1))
    trees = sample_trees(graph, np.arange(graph.num_nodes), (3,) * layers, np.random.default_rng(seed))
    table = MendedTable(graph.features, torch.zeros(graph.num_nodes, WIDTH))
    ours = model(trees, table, torch.Generator().manual_seed(seed))
    theirs = sage(trees, FeatureTable(graph.features), torch.Generator().manual_seed(seed))
    assert torch.equal(ours, theirs)
    assert torch.equal(MendedEvaluator(graph, model).logits(model), Evaluator(graph).logits(sage))


@pytest.mark.parametrize("layout", ["paper", "authors"])
def test_a_mini_batch_reads_the_embedding_of_every_tree_node(layout):
    """Not only the root's: with the full neighbourhood drawn, changing a neighbour's z̄ changes the root's logits."""
    graph = Graph.from_edges(np.array([(0, 1)]), np.ones((2, 2)), np.zeros(2), 2)
    model, z = new_model(graph, layout), embeddings_of(graph)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.abs_()
    tree = sample_trees(graph, np.array([0]), (3,) * 2, np.random.default_rng(0))
    other = z.clone()
    other[1] += 1
    logits = [model(tree, MendedTable(graph.features, each)) for each in (z, other)]
    assert not torch.allclose(*logits)


@pytest.mark.parametrize("layout", ["paper", "authors"])
def test_dropout_is_for_training_and_follows_its_generator(layout):
    graph = random_graph(20, 40, seed=3)
    model, table = new_model(graph, layout, dropout=0.5), MendedTable(graph.features, embeddings_of(graph))
    trees = sample_trees(graph, np.arange(20), (3,) * 2, np.random.default_rng(0))
    first, again, other = (model(trees, table, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(model(trees, table), model(trees, table))


def test_initial_weights_have_the_stated_bounds():
    layer = FusedLayer(600, 25, 50)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    of_x, of_z = layer.weight.detach().split([600, 25])
    assert 0.09 < of_x.abs().max() <= 0.1 + 1e-6
    assert 0.19 < of_z.abs().max() <= 0.2 + 1e-6


def test_layers_with_self_loops_are_the_fused_ones_without_embeddings():
    graph = random_graph(10, 30)
    fused, plain = new_model(graph, "paper"), SelfLoopSAGE(*sizes(graph))
    for mine, theirs in zip(plain.layers, fused.layers, strict=True):
        mine.weight.data = theirs.weight.detach()[: theirs.inputs].clone()
    torch.testing.assert_close(full(plain, graph), full(fused, graph))


@pytest.mark.parametrize("name", ["gcn", "gat", "mlp"])
def test_an_encoder_fused_with_zero_embeddings_is_the_encoder(name: str):
    graph = random_graph(10, 30)
    plain, fused = new_encoder(name, *sizes(graph)), new_model(graph, "authors", encoder=name)
    plain.reset_parameters(torch.Generator().manual_seed(1))
    trees = sample_trees(graph, np.arange(10), (3, 3), np.random.default_rng(0))
    expected = plain(trees, FeatureTable(graph.features, "cpu", graph.degrees))
    assert torch.equal(fused(trees, MendedTable(graph.features, torch.zeros(10, WIDTH), graph.degrees)), expected)
    assert torch.equal(full(fused, graph, torch.zeros(10, WIDTH)), full(plain, graph))


@pytest.mark.parametrize("name", ["sage", "gcn", "gat", "mlp"])
@pytest.mark.parametrize("layout", ["authors", "chained"])
def test_fusions_are_their_equation(name: str, layout: str):
    graph = random_graph(10, 0)
    model, z = new_model(graph, layout, encoder=name), embeddings_of(graph)
    plain = new_encoder(name, *sizes(graph))
    plain.load_state_dict({key: value for key, value in model.state_dict().items() if key in plain.state_dict()})
    if layout == "chained":
        first = z @ model.fusions[0] + model.biases[0]
        added = [first, first @ model.fusions[1] + model.biases[1]]
    else:
        added = [z @ fusion for fusion in model.fusions]
    # Without edges the two layers can be applied one after the other.
    layers = [new_encoder(name, *shape, 1, 0.0) for shape in ((graph.num_features, 1, HIDDEN), (HIDDEN, 1, graph.num_classes))]
    for k, single in enumerate(layers):
        kind = "convolution" if name == "sage" else "layer"
        own = {
            key.replace(f"{kind}{k}.", f"{kind}0."): value for key, value in plain.state_dict().items() if f"{kind}{k}." in key
        }
        if name == "gat" and not k:  # one layer alone would be a last one, with a single head
            single.layers[0] = GAT.new_layer(graph.num_features, HIDDEN, False)
            single.layer0 = single.layers[0]
        single.load_state_dict(own)
    hidden = full(layers[0], graph) + added[0]
    rectified = Graph.from_edges(graph.edges(), hidden.detach().relu().numpy(), graph.labels, graph.num_classes)
    expected = full(layers[1], rectified) + added[1]
    torch.testing.assert_close(full(model, graph, z), expected, rtol=1e-4, atol=1e-5)
    trees = sample_trees(graph, np.arange(10), (2, 2), np.random.default_rng(0))
    torch.testing.assert_close(model(trees, MendedTable(graph.features, z, graph.degrees)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("layout", "encoder"), [("paper", "gcn"), ("chained", "sage_selfloop")])
def test_layouts_that_an_encoder_has_not(layout: str, encoder: str):
    with pytest.raises(ConfigError):
        fused_classifier(layout, 4, WIDTH, HIDDEN, 2, 2, 0.0, encoder=encoder)
