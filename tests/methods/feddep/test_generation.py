"""The losses of DGen against loops over nodes, slots and candidates, and its training."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import smooth_l1_loss

from feddep.datasets.synthetic import planted_partition
from feddep.graph.graph import Graph
from feddep.graph.impairing import impair
from feddep.graph.split import random_split
from feddep.methods.feddep import GeneratorParameters
from feddep.methods.feddep.dgen import DGen, Generated
from feddep.methods.feddep.fused import fused_classifier
from feddep.methods.feddep.generation import (
    Generator,
    Targets,
    generator_loss,
    nearest,
    nearest_in,
    squared_distances,
)
from small_models import drawn

WIDTH, SLOTS = 3, 4


@st.composite
def cases(
    draw: st.DrawFn,
) -> tuple[Generated, torch.Tensor, torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """What was generated, n_v, the pairs, the targets, and the prototypes of the other clients."""
    nodes, own, others = draw(st.integers(1, 6)), draw(st.integers(1, 8)), draw(st.integers(0, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    hidden = rng.random((nodes, own)) < draw(st.floats(0, 1))

    def tensor(*shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.uniform(-1, 1, shape).astype(np.float32))

    chosen = torch.from_numpy(rng.random((nodes, SLOTS)) < 0.6)
    count = torch.from_numpy(rng.uniform(0, 6, nodes).astype(np.float32)).requires_grad_()
    generated = Generated(count, tensor(int(chosen.sum()), WIDTH).requires_grad_(), chosen)
    targets = tensor(own, WIDTH)
    if draw(st.booleans()):  # equal targets, as nodes of one cluster have
        targets[:] = targets[0]
    pairs = torch.from_numpy(np.argwhere(hidden))
    prototypes = [tensor(int(rng.integers(1, 5)), WIDTH) for _ in range(others)]
    return generated, torch.from_numpy(hidden.sum(axis=1)), pairs, targets, prototypes


def by_hand(case, weights: GeneratorParameters) -> torch.Tensor:  # type: ignore[no-untyped-def]
    """L^n_i as the paper writes it, one node, one slot, one candidate at a time."""
    generated, missing, pairs, targets, prototypes = case
    nodes, place = len(missing), iter(range(int(generated.chosen.sum())))
    loss = torch.zeros(())
    for v in range(nodes):
        loss = loss + weights.count_weight * smooth_l1_loss(generated.count[v], missing[v].float())
        hidden = [u for w, u in pairs.tolist() if w == v]
        for p in range(SLOTS):
            if not generated.chosen[v, p]:
                continue
            z = generated.embeddings[next(place)]
            if hidden:
                loss = loss + weights.intra_weight * min(
                    ((z - targets[u]) ** 2).sum() for u in hidden
                )
            for of_j in prototypes:
                loss = loss + weights.cross_weight * min(
                    ((z - prototype) ** 2).sum() for prototype in of_j
                )
    return loss / nodes


@given(
    cases(),
    st.floats(0, 2),
    st.floats(0, 2),
    st.floats(0, 2),
    st.sampled_from(["paper", "authors"]),
)
def test_the_loss_and_its_gradient_are_the_paper_s(case, count, intra, cross, scale):
    """By the authors' scale, distances are averaged over slots and coordinates."""
    weights = GeneratorParameters(
        count_weight=count, intra_weight=intra, cross_weight=cross, task_weight=0.0, scale=scale
    )
    generated, missing, pairs, targets, prototypes = case
    inputs = (generated.count, generated.embeddings)
    ours, _ = generator_loss(generated, missing, pairs, targets, nearest_in(prototypes), weights)
    each = 1 if scale == "paper" else 1 / (SLOTS * WIDTH)
    theirs = by_hand(case, weights.replace(intra_weight=each * intra, cross_weight=each * cross))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    gradients = [
        torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
        if loss.requires_grad
        else None
        for loss in (ours, theirs)
    ]
    if None not in gradients:
        torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)


@given(cases(), st.integers(1, 50), st.booleans())
def test_blocks_change_no_bit_of_distances_and_their_gradients(case, numbers, elsewhere):
    """A block at a time and all at once, by PyTorch's own gradients, with and without another
    reader of the embeddings.
    """
    generated, _, _, targets, prototypes = case
    rng = torch.Generator().manual_seed(0)
    size = len(generated.embeddings)
    found: list[Targets | torch.Tensor] = [
        nearest(generated.embeddings, each) for each in (targets, *prototypes)
    ]
    found.append(torch.rand(size, WIDTH, generator=rng))
    factors = torch.rand(len(found), size, generator=rng)
    weights = torch.rand(size, WIDTH, generator=rng)

    def gradient(
        embeddings: torch.Tensor, squares: list[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        loss = torch.zeros(())
        for factor, of_term in zip(factors, squares, strict=True):
            loss = loss + (factor * of_term).sum()
        if elsewhere:
            loss = loss + (embeddings * weights).sum(dim=0).exp().sum()
        return loss, torch.autograd.grad(loss, generated.embeddings)[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("feddep.methods.feddep.generation._NUMBERS", numbers)
        ours = gradient(*squared_distances(generated.embeddings, found))
    dense = [(generated.embeddings - each[:]).square().sum(dim=1) for each in found]
    torch.testing.assert_close(ours, gradient(generated.embeddings, dense), rtol=0, atol=0)


def test_the_nearest_is_found_whatever_the_block_size(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(35, 3, generator=generator)
    candidates = torch.randn(11, 3, generator=generator)
    expected = candidates[torch.cdist(points, candidates).argmin(dim=1)]
    assert torch.equal(nearest(points, candidates)[:], expected)
    monkeypatch.setattr("feddep.methods.feddep.generation._BLOCK", 20)
    assert torch.equal(nearest(points, candidates)[:], expected)


GRAPH = planted_partition(160, 4, 8, 32, 6.0, 1.0, 8, 0.8, 0)
SPLIT = random_split(160, {"train": 0.6, "val": 0.2, "test": 0.2}, 0)
HOW = GeneratorParameters(
    generator_epochs=150,
    generator_optimizer="adam",
    generator_learning_rate=0.003,
    cross_weight=0.0,
)


def train(how: GeneratorParameters, graph: Graph = GRAPH, bias: float | None = None) -> Any:
    """Train on one client; returns which weights of DGen have moved, the losses and the impaired
    subgraph.
    """
    impaired = impair(graph, SPLIT, 0.5, "all", np.random.default_rng(0))
    targets = torch.nn.functional.one_hot(torch.from_numpy(GRAPH.labels), 4).float() * 1.6 - 0.8
    others = nearest_in([torch.rand(3, 4, generator=torch.Generator().manual_seed(1))])
    dgen = drawn(DGen(32, 4, 5, 16, 0.0))
    classifier = drawn(fused_classifier("paper", 32, 4, 8, 4, 2, 0.0))
    if bias is not None:
        torch.nn.init.constant_(dgen.count.bias, bias)
    before = [parameter.clone() for parameter in dgen.parameters()]
    losses = Generator(dgen, how, 0, "client0").train(classifier, impaired, SPLIT, targets, others)
    moved = [not torch.equal(a, b) for a, b in zip(before, dgen.parameters(), strict=True)]
    return moved, losses, impaired


@pytest.mark.parametrize("term", ["count", "intra", "cross", "task", None])
def test_every_term_trains_the_generator(term):
    """With one weight alone, one step moves DGen, which generates something from the first step on;
    with none, it stays.
    """
    weights: dict[str, Any] = {
        f"{each}_weight": float(each == term) for each in ("count", "intra", "cross", "task")
    }
    moved, *_ = train(GeneratorParameters(generator_epochs=1, **weights), bias=2.0)
    assert any(moved) == (term is not None)


def test_hidden_training_nodes_lend_no_label():
    """Labels of hidden nodes are changed; not a number moves."""
    how = HOW.replace(generator_epochs=2)
    _, losses, impaired = train(how)
    assert set(impaired.hidden) & set(SPLIT.train)
    labels = GRAPH.labels.copy()
    labels[impaired.hidden] = (labels[impaired.hidden] + 1) % 4
    assert train(how, dataclasses.replace(GRAPH, labels=labels))[1] == losses
