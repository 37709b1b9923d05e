"""AdaFGL: its equations a node at a time, what it sends, and that without a second step it is
FedAvg.
"""

from functools import partial

import numpy as np
import pytest
import torch
from scipy import special

from divided import random_task
from feddep.methods.distilled import AdaFGLParameters
from feddep.methods.distilled.adafgl import (
    AdaFGLModel,
    SmoothedMLP,
    View,
    edges,
    homophily_score,
    signed,
    similarity,
    with_loops,
)
from feddep.training.evaluator import Evaluator
from graphs import random_graph
from method_tasks import run_on

softmax = partial(special.softmax, axis=1)
GCN = {"encoder": "gcn", "full_batch": True, "rounds": 4}


def test_similarity_and_signs_are_their_formulas():
    q = torch.rand(6, 3, dtype=torch.float64)
    found = similarity(q)
    for i in range(6):
        for j in range(6):
            cosine = float(q[i] @ q[j] / q[i].norm() / q[j].norm())
            assert float(found[i, j]) == pytest.approx(0.0 if i == j else cosine)
    p, mean = signed(found), float(found.mean())
    for i in range(6):
        for j in range(6):
            r = float(found[i, j])
            expected = (r - mean) / (float(found.max()) - mean) if r > mean else r / mean - 1
            assert float(p[i, j]) == pytest.approx(1.0 if i == j else expected, abs=1e-6)


def test_smoothed_features_are_read_without_being_held():
    generator = torch.Generator().manual_seed(0)
    mlp = SmoothedMLP(5, 4, 3, 2, 2, 0.5)
    mlp.reset_parameters(generator)
    x, a = torch.rand(6, 5), with_loops(torch.rand(6, 6))
    joined = torch.cat([x, a @ x, a @ a @ x], dim=1)
    first = torch.cat(mlp.weight.split(4, dim=1))
    hidden = torch.nn.functional.prelu(joined @ first + mlp.bias, mlp.activation.weight)
    torch.testing.assert_close(mlp(View(x, x, a, a), None), mlp.rest[0](hidden))


def test_the_score_is_that_of_label_propagation():
    path = torch.diag(torch.ones(3), 1) + torch.diag(torch.ones(3), -1)
    train, labels = torch.tensor([0, 3, 1, 2]), torch.tensor([0, 0, 1, 1])
    assert homophily_score(path, labels, train, 2) == 1.0  # nodes 1 and 2 are asked, beside 0 and 3
    assert homophily_score(path, torch.tensor([0, 1, 0, 1]), train, 2) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_the_score_spreads_labels_by_halves(seed: int):
    graph = random_graph(80, 160, seed=seed)
    a, labels = torch.from_numpy(graph.adjacency.toarray()), torch.from_numpy(graph.labels)
    train = torch.from_numpy(np.random.default_rng(seed).permutation(80))
    start = np.full((80, 3), 1 / 3)
    start[train[:40]] = np.eye(3)[graph.labels[train[:40]]]
    y = start
    for _ in range(10):
        y = 0.5 * with_loops(a).numpy() @ y + 0.5 * start
        y[train[:40]] += start[train[:40]]
    expected = (y.argmax(axis=1) == graph.labels)[train[40:]].mean()
    assert homophily_score(a, labels, train, 3) == pytest.approx(expected)


@pytest.mark.parametrize("score", [0.0, 0.3, 1.0])
def test_the_prediction_mixes_both_branches(score: float):
    task = random_task(clients=2, **GCN)
    model = AdaFGLModel(task, AdaFGLParameters(alike=0.0))
    evaluator = Evaluator(task.subgraphs()[0][0], "cpu", model.aggregation)
    model.score = score
    view = model.view(evaluator.features, evaluator.adjacency)
    # So that predictions and their similarity differ more than those of an untrained model.
    different = view._replace(relation=torch.rand(view.relation.shape))
    q = softmax(model.extractor.full(evaluator.features, evaluator.adjacency).detach().numpy())
    np.testing.assert_allclose(view.q, q, rtol=1e-5)
    mixed = 0.05 * edges(evaluator.adjacency) + 0.95 * similarity(torch.from_numpy(q))
    torch.testing.assert_close(view.smoothing, with_loops(mixed))
    z, own, smoothed, h = (branch(view, None).detach() for branch in model.branches.values())
    p = signed(0.2 * different.relation + 0.8 * similarity(h.softmax(1))).numpy()
    passed = (
        softmax(np.maximum(p, 0) @ h.numpy()) - softmax(np.maximum(-p, 0) @ h.numpy()) + h.numpy()
    ) / 2
    homophilous = (softmax(z.numpy()) + q) / 2
    heterophilous = (softmax(own.numpy()) + softmax(smoothed.numpy()) + softmax(passed)) / 3
    expected = score * homophilous + (1 - score) * heterophilous
    np.testing.assert_allclose(model.predict(different)[0].detach(), expected, rtol=1e-4)
    predicted = model.predict(view)[0].detach()
    np.testing.assert_allclose(evaluator.logits(model).exp(), predicted, rtol=1e-4)


@pytest.mark.parametrize("knowledge", ["probabilities", "logits"])
def test_the_homophilous_branch_is_drawn_to_what_the_federation_knows(knowledge: str):
    model = AdaFGLModel(random_task(clients=2, **GCN), AdaFGLParameters(knowledge=knowledge))
    z, q = torch.randn(6, 3), torch.rand(6, 3)
    labels, train = torch.tensor([0, 1, 2, 0, 1, 2]), torch.arange(4)
    found = model.losses({"homophilous": z}, View(q, q, q, q), labels, train)
    said = z.softmax(dim=1) if knowledge == "probabilities" else z
    truth = -z.log_softmax(dim=1)[train, labels[train]].mean()
    torch.testing.assert_close(found, truth + (said - q).square().mean())


def test_a_switch_takes_one_branch():
    """A threshold of 0 always takes the homophilous branch; both share step 1."""
    task = random_task(**GCN)
    first, other = (
        run_on(task, "adafgl", combination="switch", threshold=threshold).history.losses
        for threshold in (0.0, 1.0)
    )
    assert first[:2] == other[:2]
    assert all(mine != theirs for mine, theirs in zip(first[2], other[2], strict=True))
