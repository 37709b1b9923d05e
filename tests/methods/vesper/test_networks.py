"""Perceptrons and decoders against their equations."""

import numpy as np
import pytest
import torch

from feddep.methods.vesper.networks import ConcatDecoder, GRUDecoder, Perceptron, feature_rows
from feddep.nn.sparse import SparseMatrix
from graphs import random_graph
from small_models import drawn


def test_a_perceptron_reads_sparse_and_dense_features_alike():
    graph, nodes = random_graph(9, 10, density=0.2), np.array([4, 0, 7])
    perceptron = drawn(Perceptron([6, 5, 2]))
    dense = torch.from_numpy(graph.features.toarray()[nodes])
    rows = feature_rows(graph.features, nodes)
    assert isinstance(rows, SparseMatrix)
    first, last = perceptron.maps
    expected = (dense @ first.weight.T + first.bias).relu() @ last.weight.T + last.bias
    for x in (rows, dense):
        torch.testing.assert_close(perceptron(x), expected)
    perceptron.relu_last = True
    torch.testing.assert_close(perceptron(dense), expected.relu())


def test_rows_with_few_zeros_are_dense():
    graph, nodes = random_graph(9, 10, density=0.6), np.array([1, 8])
    rows = feature_rows(graph.features, nodes)
    assert isinstance(rows, torch.Tensor)
    np.testing.assert_array_equal(rows.numpy(), graph.features.toarray()[nodes])


def test_dropout_is_between_the_maps_and_only_with_a_generator():
    x = torch.ones(2, 4)
    for widths, changes in (([4, 3], False), ([4, 30, 3], True)):
        perceptron = drawn(Perceptron(widths, dropout=0.5))
        assert (
            torch.equal(perceptron(x), perceptron(x, torch.Generator().manual_seed(1)))
            is not changes
        )


@pytest.mark.parametrize("maps", [1, 2])
def test_the_concat_decoder_reads_the_layers_side_by_side(maps):
    decoder = drawn(ConcatDecoder(3, 2, 4, maps, 0.0))
    x = torch.randn(5, 2, 3)
    hidden = torch.cat([x[:, 0], x[:, 1]], dim=1)
    for k, each in enumerate(decoder.perceptron.maps):
        hidden = (hidden.relu() if k else hidden) @ each.weight.T + each.bias
    torch.testing.assert_close(decoder(x), hidden)
    assert decoder(x).shape == (5, 4)


def test_the_gru_decoder_reads_the_layers_in_turn():
    decoder = drawn(GRUDecoder(3, 4, 1, 0.0))
    x = torch.randn(5, 2, 3)
    gru, (last,) = decoder.gru, decoder.perceptron.maps
    state = torch.zeros(5, 3)
    for layer in range(2):  # Cho et al., 2014, in PyTorch's order of the gates
        r_x, z_x, n_x = (x[:, layer] @ gru.weight_ih_l0.T + gru.bias_ih_l0).chunk(3, dim=1)
        r_h, z_h, n_h = (state @ gru.weight_hh_l0.T + gru.bias_hh_l0).chunk(3, dim=1)
        z = (z_x + z_h).sigmoid()
        state = (1 - z) * (n_x + (r_x + r_h).sigmoid() * n_h).tanh() + z * state
    torch.testing.assert_close(decoder(x), state @ last.weight.T + last.bias)
