"""Convolution on expanded subgraphs, against convolution on the global graph and against loops."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from divided import convolved, divide, expanded, random_task, tasks, trained
from feddep.graph.graph import Graph, normalised_adjacency
from feddep.graph.sampling import sample_trees
from feddep.methods.shared.expansion import new_expanded_model


def mini_batch(task, model, subgraph, levels, fanouts, seed=0):
    """Logits of a client's nodes from sampled trees, and the trees."""
    layers, nodes = len(fanouts), len(subgraph.wide.labels)
    graphs = [subgraph.wide if k in levels else subgraph.narrow for k in reversed(range(layers))]
    own = new_expanded_model(task, levels)
    own.load_state_dict(model.state_dict())
    trees = sample_trees(graphs, np.arange(nodes), fanouts, np.random.default_rng(seed))
    return own(trees, subgraph.table), trees


@given(tasks(), st.sampled_from(["sage", "gcn"]))
def test_with_everything_exchanged_convolution_is_that_of_the_global_graph(task, encoder):
    task = dataclasses.replace(task, setting=task.setting.replace(encoder=encoder))
    model, levels = trained(task), range(task.setting.layers)
    whole = task.evaluator.logits(model)
    all_edges, subgraphs, _ = expanded(task, model, levels)
    for edges, subgraph in zip(all_edges, subgraphs, strict=True):
        ours = subgraph.outputs(model, task.setting.layers)
        torch.testing.assert_close(ours, whole[torch.from_numpy(edges.nodes)], rtol=1e-4, atol=1e-5)


def across_by_hand(task, model):
    """FedGraph's convolutions, a node at a time: own neighbours alone in the first, all neighbours
    in the others.
    """
    owner, x = task.partition.client, task.graph.features.toarray()
    for k, convolution in enumerate(model.convolutions):
        heard = task.graph.adjacency.toarray() * ((owner[:, None] == owner) if k == 0 else 1)
        x = convolved(sp.csr_matrix(heard), np.maximum(x, 0) if k else x, convolution)
    return x


@given(tasks())
def test_with_hidden_embeddings_exchanged_it_is_the_convolution_across_clients(task):
    model = trained(task)
    expected = across_by_hand(task, model)
    all_edges, subgraphs, _ = expanded(task, model, range(1, task.setting.layers))
    for edges, subgraph in zip(all_edges, subgraphs, strict=True):
        ours = subgraph.outputs(model, task.setting.layers)
        np.testing.assert_allclose(ours, expected[edges.nodes], rtol=1e-4, atol=1e-5)


def test_a_gcn_across_clients_has_its_own_first_layer_and_the_global_second():
    task = random_task(encoder="gcn", dropout=0.0)
    model, owner = trained(task), task.partition.client
    adjacency, x = normalised_adjacency(task.graph).toarray(), task.graph.features.toarray()
    (w0, b0), (w1, b1) = ([p.detach().numpy() for p in each.parameters()] for each in model.layers)
    inner = np.zeros_like(adjacency)
    for (graph, _), nodes in zip(
        task.subgraphs(), map(task.partition.nodes, range(3)), strict=True
    ):
        inner[np.ix_(nodes, nodes)] = normalised_adjacency(graph).toarray()
    expected = adjacency @ np.maximum(inner @ x @ w0 + b0, 0) @ w1 + b1
    for i, subgraph in enumerate(expanded(task, model, [1])[1]):
        ours = subgraph.logits(model)
        np.testing.assert_allclose(ours, expected[owner == i], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("first", [0, 1])
def test_where_every_node_has_one_neighbour_sampling_changes_nothing(layers, first):
    pairs = np.array([(0, 1), (2, 3), (4, 5), (6, 7)])
    # Node 8 is isolated.
    graph = Graph.from_edges(pairs, np.random.default_rng(0).random((9, 4)), np.zeros(9), 2)
    task = divide(graph, np.array([0, 1, 0, 0, 1, 0, 1, 1, 0]), layers=layers)
    model, levels = trained(task), range(first, layers)
    for subgraph in expanded(task, model, levels)[1]:
        logits, _ = mini_batch(task, model, subgraph, levels, [2] * layers)
        n = len(subgraph.outputs(model, layers))
        torch.testing.assert_close(
            logits[:n], subgraph.outputs(model, layers), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("first", [0, 1])
def test_a_mini_batch_reads_what_was_received_wherever_a_stand_in_was_drawn(first):
    """The last but one convolution's inputs and the last convolution, by hand, for every root of a
    two-layer model.
    """
    task = random_task()
    model, levels = trained(task), range(first, 2)
    for subgraph in expanded(task, model, levels)[1]:
        n = subgraph.outputs(model, 1).shape[0]
        logits, trees = mini_batch(task, model, subgraph, levels, (2, 3))
        x = subgraph.wide.features.toarray()
        width = model.convolutions[0].inputs
        received = subgraph.table.embeddings(np.arange(len(x)))[:, 1:].split(
            model.convolutions[1].inputs, dim=1
        )
        image, hidden = (
            (received[0].numpy(), received[1].numpy())
            if first == 0
            else (None, received[0].numpy())
        )
        w0, b0, w1, b1 = (tensor.detach().numpy() for tensor in model.state_dict().values())

        def first_layer(
            node, drawn, x=x, n=n, image=image, hidden=hidden, width=width, w0=w0, b0=b0
        ):
            if node >= n:
                return hidden[node]
            drawn = [u for u in drawn if u >= 0]
            assert first == 0 or all(u < n for u in drawn)
            messages = [image[u] if u >= n else x[u] @ w0[width:] for u in drawn]
            return np.maximum(
                x[node] @ w0[:width] + (np.mean(messages, axis=0) if messages else 0) + b0, 0
            )

        for tree, row in zip(trees.nodes[:n], logits.detach().numpy(), strict=False):
            places = [first_layer(tree[p], tree[3 + 3 * p : 6 + 3 * p]) for p in range(3)]
            mean = np.mean(places[1:], axis=0) if tree[1] >= 0 else np.zeros_like(places[0])
            np.testing.assert_allclose(
                row, np.concatenate([places[0], mean]) @ w1 + b1, rtol=1e-4, atol=1e-5
            )
