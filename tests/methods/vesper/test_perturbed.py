"""Perturbed message passing against a slow, dense reference, and its invariants."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddep.graph.blocks import Blocks, BlockSampler
from feddep.graph.graph import Graph
from feddep.methods.vesper import perturbed
from feddep.methods.vesper.perturbed import (
    Design,
    PerturbedMessagePassing,
    spectrally_normalised,
)
from graphs import graphs, random_graph
from small_models import drawn

WIDTH = 3
DESIGNS = [
    *(
        Design("gin", order)
        for order in ("weights_first", "noise_first", "no_weights", "noise_last")
    ),
    *(Design("gcn", order) for order in ("weights_first", "noise_last")),
    *(Design("gcn", order, min_degree=2) for order in ("weights_first", "noise_first")),
    Design("gcn", min_degree=3, floor=3),
    *(
        Design("gin", order, encodings=True)
        for order in ("weights_first", "noise_first", "noise_last")
    ),
]
EVERY = pytest.mark.parametrize(
    "design",
    DESIGNS,
    ids=lambda d: f"{d.aggregation}-{d.order}-{d.min_degree}-{d.floor}-{d.encodings}",
)


def new_extractor(design: Design, layers: int, width: int = WIDTH) -> PerturbedMessagePassing:
    return drawn(PerturbedMessagePassing(width, layers, design), 4)


def encodings_of(graph: Graph, width: int = WIDTH) -> torch.Tensor:
    return torch.randn(graph.num_nodes, width, generator=torch.Generator().manual_seed(5))


def whole(graph: Graph, layers: int, roots: np.ndarray | None = None) -> Blocks:
    """The message-flow graph of nodes that hear all their neighbours."""
    roots = np.arange(graph.num_nodes) if roots is None else roots
    return BlockSampler(graph.adjacency, graph.num_nodes).draw(
        roots, layers, np.random.default_rng(0)
    )


def length(row: np.ndarray) -> float:
    return float(np.sqrt((row**2).sum())) or 1.0


def by_hand(
    extractor: PerturbedMessagePassing,
    graph: Graph,
    encodings: torch.Tensor,
    noise: list[np.ndarray],
    theta: float,
) -> list[np.ndarray]:
    """All nodes, one at a time, every number in the order of Algorithm 1 (lines 4 to 9) and
    Algorithm 2; shape (n, d) a layer.
    """
    design, adjacency, d = extractor.design, graph.adjacency.toarray(), graph.degrees
    h = np.array([row / length(row) for row in encodings.double().numpy()])  # line 4
    first, found = [h] if design.encodings else [], []
    for layer in range(1, extractor.depth + 1):
        raw = (
            extractor.raw[layer - 1].detach().double().numpy()
            if len(extractor.raw)
            else np.eye(WIDTH)
        )
        fixed = design.order in ("weights_first", "noise_last")
        # Appendix C.4: spectral norms are one.
        W = raw / np.linalg.svd(raw)[1].max() if fixed else raw
        rows = []
        for v in range(graph.num_nodes):
            if design.aggregation == "gin":  # equation 4 with ω = β = 1
                a = h[v] + sum((h[u] for u in np.flatnonzero(adjacency[v])), np.zeros(WIDTH))
            else:  # equation 33
                degree = np.maximum(d, design.floor)
                terms = (
                    h[u] / np.sqrt((degree[v] + 1) * (degree[u] + 1))
                    for u in np.flatnonzero(adjacency[v])
                )
                a = h[v] / (degree[v] + 1) + sum(terms, np.zeros(WIDTH))
            z = theta * noise[layer - 1][v]
            truncated = d[v] < design.min_degree  # Algorithm 2, lines 5 and 6
            if truncated:
                low = extractor.low[layer - 1]
                W_tr = low.weight.detach().double().numpy()
                b_tr = low.bias.detach().double().numpy()
            match design.order:
                case "weights_first":  # lines 7 and 8
                    row = np.maximum((W_tr @ h[v] + b_tr if truncated else W @ a) + z, 0)
                case "noise_first":
                    row = np.maximum(W_tr @ (h[v] + z) + b_tr if truncated else W @ (a + z), 0)
                case "no_weights":
                    row = a + z
                case "noise_last":
                    row = np.maximum(W @ a, 0)
            rows.append(row / length(row))  # line 9
        h = np.array(rows)
        found.append(h)
    return first + ([found[-1] + theta * noise[0]] if design.order == "noise_last" else found)


@EVERY
@given(graph=graphs(), layers=st.integers(1, 3), theta=st.sampled_from([0.0, 0.7]))
def test_a_layer_is_the_definition(design, graph, layers, theta):
    design = dataclasses.replace(design, theta=theta)
    extractor = new_extractor(design, layers)
    encodings = encodings_of(graph)
    blocks = whole(graph, layers)
    n = graph.num_nodes
    draws = 1 if design.order == "noise_last" else layers
    source = torch.Generator().manual_seed(6)
    noise = [
        torch.randn(n, WIDTH, generator=source).double().numpy() for _ in range(draws)
    ] * layers
    found = extractor(encodings, blocks, blocks.degrees, torch.Generator().manual_seed(6))
    expected = by_hand(extractor, graph, encodings, noise, theta)
    assert len(found) == len(expected) == draws + design.encodings
    np.testing.assert_allclose([each.detach().numpy() for each in found], expected, atol=1e-4)


@pytest.mark.slow
@EVERY
@given(graph=graphs(), layers=st.integers(1, 3), seed=st.integers(0, 2**16))
def test_blocks_of_some_roots_equal_the_whole_graph(design, graph, layers, seed):
    extractor, encodings = new_extractor(design, layers), encodings_of(graph)
    roots = np.random.default_rng(seed).permutation(graph.num_nodes)[: 1 + seed % graph.num_nodes]
    blocks, full = whole(graph, layers, roots), whole(graph, layers)
    found = extractor(encodings[blocks.nodes], blocks, blocks.degrees)
    expected = [each[roots] for each in extractor(encodings, full, full.degrees)]
    torch.testing.assert_close([*found], expected, atol=1e-5, rtol=1e-4)


@EVERY
def test_the_layers_can_be_computed_in_pieces(design, monkeypatch):
    graph = random_graph(30, 60)
    extractor, blocks, encodings = new_extractor(design, 2), whole(graph, 2), encodings_of(graph)
    found = extractor(encodings, blocks, blocks.degrees)
    monkeypatch.setattr(perturbed, "ROWS", 7)
    for gradient in (True, False):
        with torch.set_grad_enabled(gradient):
            in_pieces = extractor(iter(encodings.split(4)), blocks, blocks.degrees)
        torch.testing.assert_close(found, in_pieces)


@given(st.integers(1, 12), st.integers(0, 2**16))
def test_the_spectral_norm_is_one_by_svd(size, seed):
    weight = torch.randn(size, size, generator=torch.Generator().manual_seed(seed))
    values = np.linalg.svd(spectrally_normalised(weight).double().numpy())[1]
    assert values.max() == pytest.approx(1, abs=2e-6)


def test_the_gradient_flows_through_the_spectral_norm():
    weight = torch.randn(
        4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True
    )
    assert torch.autograd.gradcheck(spectrally_normalised, weight)
    (gradient,) = torch.autograd.grad(spectrally_normalised(weight).pow(2).sum(), weight)
    # Scaling the raw weights changes nothing.
    assert float((gradient * weight.detach()).sum()) == pytest.approx(0, abs=1e-12)


def test_detached_gradients_reach_only_the_weights_behind_the_noise():
    graph = random_graph(20, 40)
    blocks = whole(graph, 2)
    for order, reaches in (("noise_first", False), ("weights_first", True)):
        extractor = new_extractor(Design("gin", order, theta=0.3), 2)
        encodings = encodings_of(graph).requires_grad_()
        first, last = extractor(encodings, blocks, blocks.degrees, torch.Generator())
        gradients = torch.autograd.grad(
            last.sum(), [encodings, *extractor.raw], retain_graph=True, allow_unused=True
        )
        assert [each is not None for each in gradients] == [reaches, reaches, True]
        own = torch.autograd.grad(first.sum(), [encodings, extractor.raw[0]], allow_unused=True)
        assert [each is not None for each in own] == [reaches, True]
