"""OpenSAGE left closed is GraphSAGE; with a fan-out for each layer it is the definition."""

import numpy as np
import pytest
import torch
from divided import random_problem, trained

from feddep.baselines.layerwise import sample_layerwise
from feddep.baselines.open_sage import OpenSAGE
from feddep.nn.features import FeatureTable
from feddep.sampling import NOBODY, sample_trees


def opened(problem, model):
    setting, graph = problem.setting, problem.graph
    sizes = (graph.num_features, setting.hidden, graph.num_classes, setting.layers, setting.fanout, setting.dropout)
    found = OpenSAGE(*sizes)
    found.load_state_dict(model.state_dict())
    return found


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_closed_it_is_graphsage_to_the_last_bit(layers):
    problem = random_problem(layers=layers, dropout=0.4)
    model, table = trained(problem), FeatureTable(problem.graph.features, 3)
    trees = sample_trees(problem.graph, np.arange(24), 3, layers, np.random.default_rng(0))
    ours = opened(problem, model)(trees, table, torch.Generator().manual_seed(1))
    assert torch.equal(ours, model(trees, table, torch.Generator().manual_seed(1)))


def by_hand(model, x, graph_of_place, layer, place):
    """Output of ``layer`` at a place of a tree that is given as place → (node, drawn places by layer)."""
    node, drawn = graph_of_place[place]
    if layer < 0:
        return x[node]

    def inputs(at):
        value = by_hand(model, x, graph_of_place, layer - 1, at)
        return np.maximum(value, 0) if layer else value

    rows = [inputs(at) for at in drawn[layer] if graph_of_place[at][0] != NOBODY]
    own = inputs(place)
    convolution = model.convolutions[layer]
    joined = np.concatenate([own, np.mean(rows, axis=0) if rows else np.zeros_like(own)])
    return joined @ convolution.weight.detach().numpy() + convolution.bias.detach().numpy()


@pytest.mark.parametrize("fanouts", [(2,), (1, 3), (3, 1), (2, 1, 3)])
def test_each_layer_averages_over_its_own_number_of_draws(fanouts):
    problem = random_problem(layers=len(fanouts))
    model = opened(problem, trained(problem))
    model.fanouts = fanouts
    trees = sample_layerwise([problem.graph] * len(fanouts), np.arange(24), fanouts, np.random.default_rng(0))
    logits = model(trees, FeatureTable(problem.graph.features, fanouts[-1])).detach().numpy()
    x = problem.graph.features.toarray()
    for tree, row in zip(trees, logits, strict=True):
        places, drawn = 1, {place: {} for place in range(len(tree))}
        for layer, fanout in zip(reversed(range(len(fanouts))), fanouts, strict=True):
            for place in range(places):
                drawn[place][layer] = [places + place * fanout + j for j in range(fanout)]
            places *= 1 + fanout
        at = {place: (tree[place], drawn[place]) for place in range(len(tree))}
        np.testing.assert_allclose(row, by_hand(model, x, at, len(fanouts) - 1, 0), rtol=1e-4, atol=1e-5)
