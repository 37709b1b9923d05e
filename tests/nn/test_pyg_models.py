"""Models of PyTorch Geometric as classifiers: the sampled subgraph, full neighbourhoods, learning,
and what is no model.
"""

import sys

import numpy as np
import pytest
import torch

from feddep.graph.sampling import PAD, SampledTrees, sample_trees
from feddep.nn.encoders import new_encoder
from feddep.nn.feature_table import FeatureTable
from feddep.nn.pyg_models import PyGClassifier, sampled_edges
from feddep.training.config import TrainingConfig
from feddep.training.evaluator import Evaluator
from feddep.utils.errors import ConfigError
from graphs import random_graph
from method_tasks import run_on, task_of
from small_models import drawn, edge_index

PYG = "torch_geometric.nn.models"
SIZES = (7, 6, 3, 2, 0.0)


def graph_and_model(name: str, dropout: float = 0.0) -> tuple:
    graph = random_graph(40, 60, seed=2)
    model = drawn(
        new_encoder(f"{PYG}.{name}", graph.num_features, 6, graph.num_classes, 2, dropout)
    )
    return graph, model


def test_the_edges_of_trees_are_those_that_were_drawn():
    # A root 0 with neighbours 1 and 2, drawn for the first layer 1 twice; 1 has drawn 0 and 3, 2
    # has none.
    trees = SampledTrees(np.array([[0, 1, 2, 1, 1, 0, 3, 4, 4]]), (2, 2))
    edges = sampled_edges(trees, np.array([False, False, False, False, True]))
    assert set(map(tuple, edges.T)) == {(1, 0), (2, 0), (0, 1), (3, 1)}
    assert edges.shape == (2, 4)


@pytest.mark.parametrize("name", ["GAT", "GIN", "GraphSAGE"])
def test_with_every_neighbour_drawn_a_batch_is_the_whole_graph(name: str):
    graph, model = graph_and_model(name)
    roots = np.arange(40)[::3]
    trees = sample_trees(graph, roots, (200, 200), np.random.default_rng(0))
    assert (trees.nodes == PAD).any()  # some nodes are isolated
    batch = model(trees, FeatureTable(graph.features))
    expected = model.model(torch.from_numpy(graph.features.toarray()), edge_index(graph))
    torch.testing.assert_close(batch, expected[roots], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        Evaluator(graph, aggregation=model.aggregation).logits(model), expected
    )


def test_it_is_a_function_of_its_streams():
    graph, model = graph_and_model("GAT", dropout=0.5)
    trees = sample_trees(graph, np.arange(9), (3, 3), np.random.default_rng(0))
    table = FeatureTable(graph.features)
    before = torch.random.get_rng_state()
    first, same, other = (
        model(trees, table, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert torch.equal(model(trees, table), model(trees, table))
    again = graph_and_model("GAT", dropout=0.5)[1]
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True)
    )
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(
    "method", ["global", "local", "fedprox", "scaffold", "fedadam", "fedavg_oracle"]
)
def test_methods_that_train_any_classifier(method: str):
    result = run_on(task_of(method, encoder=f"{PYG}.GraphSAGE", rounds=1), method)
    assert np.isfinite(result.history.losses).all()


@pytest.mark.parametrize(
    "name",
    [
        "nosuchpackage.GAT",
        f"{PYG}.NoSuchModel",
        f"{PYG}.MetaPath2Vec",
        "torch_geometric.nn.GCNConv",
        "math.pi",
        "json.dumps",
    ],
)
def test_what_is_no_model_is_a_configuration_error(name: str):
    with pytest.raises(ConfigError) as caught:
        new_encoder(name, *SIZES)
    assert name in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["sages", "torch geometric.GAT", "a.", ".b", "3.b", ""])
def test_a_name_that_cannot_be_one(name: str):
    with pytest.raises(ValueError, match="encoder"):
        TrainingConfig(encoder=name)


def test_a_class_that_reads_sampled_trees_itself(monkeypatch):
    from feddep.nn import sage

    monkeypatch.setitem(sys.modules, "own", sage)
    assert type(new_encoder("own.GraphSAGE", *SIZES)) is sage.GraphSAGE
    assert isinstance(new_encoder(f"{PYG}.GraphSAGE", *SIZES), PyGClassifier)
    ours, same = (
        run_on(task_of("fedavg", encoder=name), "fedavg") for name in ("sage", "own.GraphSAGE")
    )
    assert ours.curve["loss"] == same.curve["loss"]
