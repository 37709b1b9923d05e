"""Embedding-fused graph convolution against its equation, node by node."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddep.graph.graph import Graph, mean_adjacency
from feddep.graph.sampling import PAD, sample_trees
from feddep.methods import registry
from feddep.methods.feddep.dgen import DGen
from feddep.methods.feddep.fused import (
    FusedClassifier,
    FusedGNN,
    FusedLayer,
    MendedTable,
    fused_classifier,
)
from feddep.nn.encoders import GAT, HEADS, new_encoder
from feddep.nn.sage import GraphSAGE
from feddep.nn.selfloop import SelfLoopSAGE
from feddep.nn.sparse import SparseMatrix
from feddep.training.config import TrainingConfig
from feddep.training.evaluator import Evaluator
from feddep.utils.errors import ConfigError
from graphs import graphs, pairs, random_graph, tree_width
from method_tasks import parameters_of
from small_models import drawn, full

WIDTH = 3
"""Width d_z of the embeddings here."""
HIDDEN = 2 * HEADS


def sizes(graph: Graph, layers: int = 2, dropout: float = 0.0) -> tuple[int, int, int, int, float]:
    return graph.num_features, HIDDEN, graph.num_classes, layers, dropout


def new_model(
    graph: Graph, layout: str, layers: int = 2, dropout: float = 0.0, encoder: str = "sage"
) -> FusedClassifier:
    features, *others = sizes(graph, layers, dropout)
    return drawn(fused_classifier(layout, features, WIDTH, *others, encoder=encoder), 1)


def embeddings_of(graph: Graph, seed: int = 0) -> torch.Tensor:
    return torch.randn(graph.num_nodes, WIDTH, generator=torch.Generator().manual_seed(seed))


def matrices(model: FusedGNN) -> list[np.ndarray]:
    """W^(0) … W^(K), each of shape (outputs, inputs + d_z), as the paper writes them."""
    return [layer.weight.detach().numpy().T for layer in model.layers]


def equation(model: FusedGNN, graph: Graph, z: np.ndarray) -> np.ndarray:
    """The paper's equations for all nodes, one node after the other, with the closed neighbourhood
    G¹(v) = {v} ∪ N(v).
    """
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
    """The same for one node of a sampled tree; drawn neighbours are a set, its members' subtrees
    are averaged.
    """
    weights, node = matrices(model), tree[at]
    last = len(weights) - 1
    if layer == 0:
        return np.maximum(
            weights[0] @ np.concatenate([graph.features[node].toarray()[0], z[node]]), 0
        )
    inner = tree_width(fanout, last - layer)
    children = [inner + at * fanout + j for j in range(fanout)]
    members = [equation_on_tree(model, graph, z, tree, fanout, layer - 1, at)]
    for neighbour in {tree[child] for child in children} - {PAD}:
        copies = [child for child in children if tree[child] == neighbour]
        members.append(
            np.mean(
                [
                    equation_on_tree(model, graph, z, tree, fanout, layer - 1, copy)
                    for copy in copies
                ],
                axis=0,
            )
        )
    out = weights[layer] @ np.concatenate([np.mean(members, axis=0), z[node]])
    return out if layer == last else np.maximum(out, 0)


@given(graphs(), st.integers(1, 3), st.integers(0, 2**16))
def test_full_batch_is_the_equation(graph, layers, seed):
    model, z = new_model(graph, "paper", layers), embeddings_of(graph, seed)
    logits = Evaluator(graph, "cpu", model.aggregation, z).logits(model)
    np.testing.assert_allclose(logits, equation(model, graph, z.numpy()), rtol=1e-4, atol=1e-5)


@given(graphs(), st.integers(1, 2), st.integers(1, 3), st.integers(0, 2**16))
def test_mini_batch_is_the_equation_on_the_drawn_neighbours(graph, layers, fanout, seed):
    model, z = new_model(graph, "paper", layers), embeddings_of(graph, seed)
    trees = sample_trees(
        graph, np.arange(graph.num_nodes), (fanout,) * layers, np.random.default_rng(seed)
    )
    logits = model(trees, MendedTable(graph.features, z))
    expected = [
        equation_on_tree(model, graph, z.numpy(), tree, fanout, layers, 0) for tree in trees.nodes
    ]
    np.testing.assert_allclose(logits.detach(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", ["paper", "authors"])
def test_no_embeddings_are_zero_embeddings(layout):
    graph = random_graph(20, 40, seed=3)
    model = new_model(graph, layout)
    zero = torch.zeros(20, WIDTH)
    torch.testing.assert_close(
        Evaluator(graph, "cpu", model.aggregation).logits(model),
        Evaluator(graph, "cpu", model.aggregation, zero).logits(model),
    )


def test_initial_weights_have_the_stated_bounds():
    layer = drawn(FusedLayer(600, 25, 50))
    of_x, of_z = layer.weight.detach().split([600, 25])
    assert 0.09 < of_x.abs().max() <= 0.1 + 1e-6
    assert 0.19 < of_z.abs().max() <= 0.2 + 1e-6


def test_layers_with_self_loops_are_the_fused_ones_without_embeddings():
    graph = random_graph(10, 30)
    fused, plain = new_model(graph, "paper", dropout=0.5), SelfLoopSAGE(*sizes(graph, dropout=0.5))
    for mine, theirs in zip(plain.layers, fused.layers, strict=True):
        mine.weight.data = theirs.weight.detach()[: theirs.inputs].clone()
    torch.testing.assert_close(full(plain, graph), full(fused, graph))
    masks = [torch.Generator().manual_seed(2) for _ in range(2)]
    dropped = full(fused, graph, torch.zeros(10, WIDTH), masks[0])
    torch.testing.assert_close(dropped, full(plain, graph, None, masks[1]))
    assert not torch.equal(dropped, full(fused, graph))


def single_layers(name: str, graph: Graph, model: FusedClassifier) -> list:
    """The two layers of an encoder, each as an encoder of its own."""
    layers = [
        new_encoder(name, *shape, 1, 0.0)
        for shape in ((graph.num_features, 1, HIDDEN), (HIDDEN, 1, graph.num_classes))
    ]
    kind = "convolution" if name == "sage" else "layer"
    for k, single in enumerate(layers):
        weights = model.state_dict().items()
        own = {
            key.replace(f"{kind}{k}.", f"{kind}0."): value
            for key, value in weights
            if f"{kind}{k}." in key
        }
        if name == "gat" and not k:  # one layer alone would be a last one, with a single head
            single.layers[0] = single.layer0 = GAT.new_layer(graph.num_features, HIDDEN, False)
        single.load_state_dict(own)
    return layers


@pytest.mark.parametrize("name", ["sage", "gcn", "gat", "mlp"])
@pytest.mark.parametrize("layout", ["authors", "chained"])
def test_fusions_are_their_equation(name: str, layout: str):
    """Where every node has one neighbour, which mini-batches draw again and again, and node 6 has
    none.
    """
    graph = pairs()
    model, z = new_model(graph, layout, encoder=name), embeddings_of(graph)
    if layout == "chained":
        first = z @ model.fusions[0] + model.biases[0]
        added = [first, first @ model.fusions[1] + model.biases[1]]
    else:
        added = [z @ fusion for fusion in model.fusions]
    first, last = single_layers(name, graph, model)
    hidden = full(first, graph) + added[0]
    rectified = Graph.from_edges(
        graph.edges(), hidden.detach().relu().numpy(), graph.labels, graph.num_classes
    )
    expected = full(last, rectified) + added[1]
    torch.testing.assert_close(full(model, graph, z), expected, rtol=1e-4, atol=1e-5)
    without, zeros = full(model, graph), full(model, graph, torch.zeros_like(z))
    torch.testing.assert_close(without, zeros, rtol=1e-4, atol=1e-5)
    trees = sample_trees(graph, np.arange(7), (2, 2), np.random.default_rng(0))
    torch.testing.assert_close(
        model(trees, MendedTable(graph.features, z, graph.degrees)), expected, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(("layout", "fewer"), [("paper", 0), ("authors", 1), ("chained", 1)])
def test_a_node_is_classified_from_features_within_k_and_l_hops(layout, fewer, layers, depth):
    """Statement 3.2, and the codes' layers, of which the first reads z̄ of a node alone; a DGen with
    an encoder of so many convolutions generates z̄.
    """
    nodes = 2 * (layers + depth) + 4
    path = [(v, v + 1) for v in range(nodes - 1)]
    features = np.random.default_rng(0).normal(size=(nodes, 5)).astype(np.float32)
    dgen = DGen(5, WIDTH, 2, HIDDEN, 0.0)
    dgen.encoder = GraphSAGE(5, HIDDEN, HIDDEN, depth, 0.0)
    drawn(dgen).count.bias.data.fill_(9.0)  # so that every slot of every node is filled

    def logits(x: np.ndarray, generate: bool) -> torch.Tensor:
        graph = Graph.from_edges(path, x, np.arange(nodes) % 2, 2)
        source = torch.Generator().manual_seed(3)
        mean = SparseMatrix.from_scipy(mean_adjacency(graph))
        generated = dgen(SparseMatrix.from_scipy(graph.features), mean, 1.0, source)
        assert generated.chosen.all()
        z = generated.mean("generated") if generate else None
        return full(new_model(graph, layout, layers), graph, z)[0]

    def hops(generate: bool) -> list[int]:
        """How far from node 0 features are that its logits depend on."""
        changed = []
        for v in range(nodes):
            x = features.copy()
            x[v] += 1
            if not torch.equal(logits(x, generate), logits(features, generate)):
                changed.append(v)
        return changed

    assert hops(True) == list(range(layers + depth - fewer + 1))
    assert hops(False) == list(range(layers + 1))


@pytest.mark.parametrize(("layout", "encoder"), [("paper", "gcn"), ("chained", "sage_selfloop")])
def test_layouts_that_an_encoder_has_not(layout: str, encoder: str):
    with pytest.raises(ConfigError, match="fused"):
        fused_classifier(layout, 4, WIDTH, HIDDEN, 2, 2, 0.0, encoder=encoder)
    parameters = parameters_of("feddep", fused=layout)
    setting = TrainingConfig(encoder=encoder, full_batch=True).model_dump()
    with pytest.raises(ConfigError, match="fused"):
        registry.find("feddep").check_setting(setting, parameters)
