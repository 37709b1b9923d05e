"""Learned edges against loops, and what they do to the convolution."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from divided import WIDTH, convolved, divide, random_task
from feddep.graph.sampling import sample_trees
from feddep.graph.split import Split
from feddep.methods.fedgsl import FedGSLParameters
from feddep.methods.fedgsl import fedgsl as structure
from feddep.methods.fedgsl.fedgsl import LearnedStructure, edge_weights, nearest
from feddep.nn.feature_table import FeatureTable
from feddep.nn.sage import GraphSAGE
from feddep.training.evaluator import Evaluator
from graphs import pairs


def cosine(a, b):
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / lengths) if lengths else 0.0


def weights_by_hand(metric, own, others):
    heavy = [max(0.0, cosine(metric * own, metric * other)) for other in others]
    total = sum(heavy)
    return [weight / total if total else 0.0 for weight in heavy]


@given(st.integers(1, 4), st.integers(0, 3), st.integers(0, 2**16))
def test_edge_weights_are_the_formula(nodes, candidates, seed):
    rng = np.random.default_rng(seed)
    metric = rng.normal(size=WIDTH)
    own = rng.normal(size=(nodes, WIDTH)) * rng.integers(0, 2, (nodes, 1))
    others = rng.normal(size=(nodes, candidates, WIDTH))
    ours = edge_weights(torch.from_numpy(metric), torch.from_numpy(own), torch.from_numpy(others))
    expected = [weights_by_hand(metric, h, z) for h, z in zip(own, others, strict=True)]
    np.testing.assert_allclose(ours, np.array(expected).reshape(nodes, candidates), atol=1e-9)


@given(st.integers(1, 9), st.integers(0, 7), st.integers(1, 5), st.integers(0, 2**16))
def test_nearest_are_the_most_similar(nodes, candidates, count, seed):
    rng = np.random.default_rng(seed)
    metric = rng.normal(size=3)
    own = rng.normal(size=(nodes, 3))
    others = rng.normal(size=(candidates, 3))
    found = nearest(*(torch.from_numpy(array) for array in (metric, own, others)), count)
    assert found.shape == (nodes, min(count, candidates))
    for row, h in zip(found, own, strict=True):
        cosines = [cosine(metric * h, metric * z) for z in others]
        assert sorted((cosines[i] for i in row), reverse=True) == pytest.approx(
            sorted(cosines, reverse=True)[:count]
        )
        assert len(set(row.tolist())) == len(row)


def test_similarities_may_be_computed_in_parts(monkeypatch):
    own, others = torch.randn(7, 3, generator=torch.Generator().manual_seed(0)), torch.eye(3)
    at_once = nearest(torch.ones(3), own, others, 2)
    monkeypatch.setattr(structure, "_ROWS", 2)
    assert torch.equal(nearest(torch.ones(3), own, others, 2), at_once)


def learned(task, share, received, count=2):
    """A model and the first client's structure, with the given embeddings received."""
    model = structure.new_model(task, FedGSLParameters(share=share))
    with torch.no_grad():
        model.metric.uniform_(0.5, 1.5, generator=torch.Generator().manual_seed(2))
    own = LearnedStructure(task.subgraphs()[0][0], "cpu", model.aggregation)
    own.embed(model)
    own.retrieve(model, received, count)
    return model, own


def some(rows, seed=0):
    return torch.rand(rows, WIDTH, generator=torch.Generator().manual_seed(seed))


def logits_by_hand(task, model, received, count, share):
    """The last convolution of every node of the first client, a node at a time."""
    graph = task.subgraphs()[0][0]
    x = graph.features.toarray()
    for convolution in model.convolutions[:-1]:
        x = np.maximum(convolved(graph.adjacency, x, convolution), 0)
    metric, scale = model.metric.detach().numpy(), np.linalg.norm(x, axis=1).mean()
    others = np.concatenate([rows.numpy() for rows in received]) * scale

    def mixed(v, mean):
        best = sorted(others, key=lambda z: -cosine(metric * x[v], metric * z))[:count]
        weights = weights_by_hand(metric, x[v], best)
        if not sum(weights):
            return mean
        return (1 - share) * mean + share * sum(
            weight * z for weight, z in zip(weights, best, strict=True)
        )

    return convolved(graph.adjacency, x, model.convolutions[-1], mixed)


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_full_convolution_is_the_formula(layers, share):
    task = random_task(layers=layers)
    received = [some(4), some(3, 1)]
    model, own = learned(task, share, received)
    expected = logits_by_hand(task, model, received, 2, share).argmax(axis=1)
    graph = task.subgraphs()[0][0]
    right = np.flatnonzero(expected == graph.labels)
    everything = np.arange(graph.num_nodes)
    validation, test, _ = own.counts(model, Split(right[:0], everything, right))
    assert (validation, test) == ((len(right), graph.num_nodes), (len(right), len(right)))


def test_a_gcn_mixes_learned_edges_into_its_normalised_sum():
    task = random_task(encoder="gcn")
    graph, received = task.subgraphs()[0][0], [some(4), some(3, 1)]
    model, own = learned(task, 0.3, received)
    metric = model.metric.detach().numpy()
    first, last = ([each.detach().numpy() for each in layer.parameters()] for layer in model.layers)
    adjacency = own.adjacency.dense().numpy()
    x = np.maximum(adjacency @ graph.features.toarray() @ first[0] + first[1], 0)
    others = np.concatenate([rows.numpy() for rows in received])
    others *= np.linalg.norm(x, axis=1).mean()
    for v, logits in enumerate(own.logits(model).numpy()):
        best = sorted(others, key=lambda z: -cosine(metric * x[v], metric * z))[:2]
        weights = weights_by_hand(metric, x[v], best)
        around = (1 - 0.3 * sum(weights)) * adjacency[v] @ x + 0.3 * np.array(weights) @ best
        np.testing.assert_allclose(logits, around @ last[0] + last[1], rtol=1e-4, atol=1e-5)


def test_where_every_node_has_one_neighbour_a_mini_batch_is_the_formula():
    graph, received = pairs(), [some(5)]
    task = divide(graph, np.zeros(7, dtype=np.int64))
    model, own = learned(task, 0.4, received)
    trees = sample_trees(graph, np.arange(7), (3,) * 2, np.random.default_rng(0))
    expected = logits_by_hand(task, model, received, 2, 0.4)
    np.testing.assert_allclose(model(trees, own.table).detach(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("received", [[], [torch.zeros(3, WIDTH)]])
def test_without_learned_edges_it_is_graphsage(received):
    task = random_task(clients=1)
    model, own = learned(task, 0.4, received)
    graph = task.graph
    trees = sample_trees(graph, np.arange(24), (3,) * 2, np.random.default_rng(0))
    plain = GraphSAGE(*task.model_sizes)
    plain.load_state_dict(model.state_dict(), strict=False)
    reference = plain(trees, FeatureTable(graph.features))
    torch.testing.assert_close(model(trees, own.table), reference)
    assert own.counts(model, task.split) == Evaluator(graph).counts(model, task.split)
