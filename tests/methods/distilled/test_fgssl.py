"""FGSSL: both terms against loops over nodes, views, what teaches whom, and that without its terms
it is FedAvg.
"""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from divided import random_task
from feddep.graph.graph import Graph, normalised_adjacency
from feddep.methods.distilled import FGSSLParameters
from feddep.methods.distilled.fgssl import FGSSLClient, MaskedColumns, Views, contrast, distillation
from feddep.nn.sparse import SparseMatrix
from feddep.training.evaluator import Evaluator
from graphs import random_graph
from mixing import client_of
from small_models import drawn

GCN = {"encoder": "gcn", "full_batch": True}


def cosine(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b / a.norm() / b.norm()


@pytest.mark.parametrize("denominator", ["pair", "all"])
def test_the_contrast_is_its_sums(denominator: str):
    labels = torch.tensor([0, 1, 0, 2, 1])
    h, taught = torch.randn(2, 5, 4, dtype=torch.float64)
    expected = 0.0
    for i in range(5):
        phi = [torch.exp(cosine(h[i], taught[j]) / 0.5) for j in range(5)]
        others = sum(phi[k] for k in range(5) if labels[k] != labels[i])
        same = [phi[p] for p in range(5) if labels[p] == labels[i]]
        own = {"pair": same, "all": [sum(same)] * len(same)}[denominator]
        terms = [-torch.log(e / (o + others)) for e, o in zip(same, own, strict=True)]
        expected += float(sum(terms)) / len(terms) / 5
    assert float(contrast(h, taught, labels, 0.5, denominator)) == pytest.approx(expected)
    assert float(contrast(h, taught, torch.zeros(5), 0.5)) == 0.0  # nobody to be told from


def test_the_distillation_is_its_sum_over_neighbours():
    graph = random_graph(8, 12)
    z, taught = torch.randn(2, 8, 3, dtype=torch.float64)
    edges = (
        torch.from_numpy(np.repeat(np.arange(8), graph.degrees)),
        torch.from_numpy(graph.indices).long(),
    )
    expected = 0.0
    for i in range(8):
        around = graph.adjacency[i].indices
        own, other = (
            torch.stack([cosine(of[i], of[j]) / 2 for j in around]).softmax(0) for of in (z, taught)
        )
        expected += 4 * float((other * (other.log() - own.log())).sum()) / 8
    assert float(distillation(z.float(), taught.float(), edges, 2.0)) == pytest.approx(
        expected, rel=1e-4
    )
    assert float(distillation(z.float(), z.float(), edges, 2.0)) == pytest.approx(0.0, abs=1e-6)


def test_a_view_lacks_edges_and_columns():
    graph = random_graph(60, 400)
    views = Views(
        graph, Evaluator(graph, "cpu", normalised_adjacency), np.random.default_rng(0), "cpu"
    )
    features, adjacency = views.draw(0.8, 0.5)
    seen = {
        tuple(sorted(pair))
        for pair in torch.stack(adjacency.entries(), dim=1).tolist()
        if pair[0] != pair[1]
    }
    assert 0.1 < len(seen) / graph.num_edges < 0.3
    assert seen < {tuple(edge) for edge in graph.edges()}
    expected = normalised_adjacency(
        Graph.from_edges(np.array(sorted(seen)), graph.features, graph.labels, graph.num_classes)
    )
    assert np.array_equal(adjacency.dense().numpy(), expected.toarray())
    x, kept = graph.features.toarray(), (features @ torch.eye(graph.num_features)).numpy()
    for column in range(x.shape[1]):
        assert np.array_equal(kept[:, column], x[:, column]) or not kept[:, column].any()
    features, adjacency = views.draw(0.0, 0.0)
    assert np.array_equal((features @ torch.eye(graph.num_features)).numpy(), x)
    assert np.array_equal(adjacency.dense().numpy(), normalised_adjacency(graph).toarray())


@pytest.mark.parametrize("teacher", ["global", "local"])
def test_who_teaches(teacher: str):
    """The released loss does not change with the global model; the written one does."""
    task = random_task(**GCN)
    losses = []
    for seed in (0, 1):
        client = client_of(task, 0, FGSSLClient, task=task, params=FGSSLParameters(teacher=teacher))
        client.load(drawn(task.new_model(), seed).state_dict())
        model = drawn(task.new_model(), 2)
        losses.append(client.taught(model))
        losses[-1].backward()
        assert all(weight.grad is not None for weight in model.layer0.parameters())
        assert all(weight.grad is None for weight in client.teacher.parameters())
    assert torch.equal(*losses) == (teacher == "local")


def test_masked_columns_are_those_of_a_masked_copy():
    """To the last bit, in the product and in its gradient."""
    matrix = sp.random(6, 20, 0.5, "csr", dtype=np.float32, random_state=np.random.default_rng(0))
    mask = (np.arange(20) % 3 > 0).astype(np.float32)
    copy = sp.csr_matrix(matrix.multiply(mask))
    copy.eliminate_zeros()
    gradients = []
    for each in (
        MaskedColumns(SparseMatrix.from_scipy(matrix), torch.from_numpy(mask)),
        SparseMatrix.from_scipy(copy),
    ):
        w = torch.randn(20, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
        product = each @ w
        (product**2).sum().backward()
        gradients.append((product, w.grad))
    torch.testing.assert_close(*gradients, rtol=0, atol=0)
