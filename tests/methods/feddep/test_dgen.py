import numpy as np
import pytest
import torch

from feddep.graph.graph import Graph, mean_adjacency
from feddep.methods.feddep.dgen import DGen, Generated
from feddep.nn.sparse import SparseMatrix
from graphs import random_graph
from small_models import drawn

GRAPH = random_graph(30, 60, seed=1)


def new_dgen(dropout: float = 0.0) -> DGen:
    return drawn(DGen(GRAPH.num_features, 4, 5, 16, dropout))


def generate(dgen: DGen, graph: Graph = GRAPH, rate: float = 1.0, seed: int = 0) -> Generated:
    x = SparseMatrix.from_scipy(graph.features)
    mean = SparseMatrix.from_scipy(mean_adjacency(graph))
    return dgen(x, mean, rate, torch.Generator().manual_seed(seed))


def predicting(count: float) -> DGen:
    """A DGen that predicts this many missing neighbours for every node."""
    dgen = new_dgen().eval()
    with torch.no_grad():
        dgen.count.weight.zero_()
        dgen.count.bias.fill_(count)
    return dgen


def test_it_is_the_paper_s_composition():
    dgen = new_dgen().eval()
    with torch.no_grad():
        dgen.count.bias.fill_(0.4)  # so that some nodes get neighbours and some do not
    generated = generate(dgen, seed=7)
    x = torch.from_numpy(GRAPH.features.toarray())
    mean = torch.from_numpy(mean_adjacency(GRAPH).toarray())

    def convolve(convolution: torch.nn.Module, h: torch.Tensor) -> torch.Tensor:
        return torch.cat([h, mean @ h], dim=1) @ convolution.weight + convolution.bias

    encoded = convolve(
        dgen.encoder.convolutions[1], convolve(dgen.encoder.convolutions[0], x).relu()
    )
    noise = torch.randn(encoded.shape, generator=torch.Generator().manual_seed(7))
    first, second = dgen.widen
    hidden = second(first(encoded + noise).relu()).relu()
    torch.testing.assert_close(generated.count, dgen.count(encoded).relu().flatten())
    assert 0 < generated.chosen.any(dim=1).sum() < 30
    torch.testing.assert_close(
        generated.embeddings, dgen.embedding(hidden).tanh().view(30, 5, 4)[generated.chosen]
    )


@pytest.mark.parametrize(
    ("count", "filled"), [(-3.0, 0), (0.4, 0), (0.6, 1), (2.4, 2), (5.0, 5), (99.0, 5)]
)
def test_the_count_is_rounded_and_clamped_for_use_only(count, filled):
    generated = generate(predicting(count))
    assert generated.chosen.tolist() == [[slot < filled for slot in range(5)]] * 30
    torch.testing.assert_close(generated.count, torch.full((30,), max(count, 0.0)))


def test_the_bernoulli_sampler_keeps_each_slot_with_its_rate():
    dgen = predicting(3)
    kept = torch.stack([generate(dgen, rate=0.3, seed=seed).chosen for seed in range(200)]).float()
    assert kept[:, :, 3:].sum() == 0
    share = kept[:, :, :3].mean().item()
    assert abs(share - 0.3) < 4.5 * (0.3 * 0.7 / kept[:, :, :3].numel()) ** 0.5
    together = (kept[:, :, 0] * kept[:, :, 1]).mean().item()  # independently: 0.3 · 0.3
    assert abs(together - 0.09) < 4.5 * (0.09 * 0.91 / (200 * 30)) ** 0.5
    assert not generate(dgen, rate=0.0).chosen.any()


def test_the_mean_over_slots():
    embeddings = torch.arange(12.0).view(2, 3, 2)
    chosen = torch.tensor([[True, False, True], [False, False, False]])
    generated = Generated(torch.zeros(2), embeddings[chosen], chosen)
    assert generated.mean("generated").tolist() == [[2, 3], [0, 0]]
    np.testing.assert_allclose(generated.mean("all"), [[4 / 3, 2], [0, 0]], rtol=1e-6)


@pytest.mark.parametrize(("count", "rate"), [(0.6, 1.0), (2.4, 0.3), (-1.0, 1.0)])
def test_what_is_left_out_and_blocks_of_nodes_change_nothing(count, rate, monkeypatch):
    """Slots that no node fills, nodes without neighbours, and how many nodes are worked on at once;
    of gradients, too.
    """
    dgen = predicting(count)

    def gradients() -> list[torch.Tensor]:
        made = generate(dgen.train(), rate=rate).embeddings
        loss = (made * torch.arange(1.0, made.numel() + 1).view_as(made)).sum()
        found = torch.autograd.grad(
            loss, list(dgen.parameters()), allow_unused=True, materialize_grads=True
        )
        dgen.eval()
        return list(found)

    with torch.no_grad():
        dgen.count.weight.normal_(0, 0.5, generator=torch.Generator().manual_seed(0))
    generated, before = generate(dgen, rate=rate), gradients()
    monkeypatch.setattr("feddep.methods.feddep.dgen._MANY", 7)
    monkeypatch.setattr("feddep.methods.feddep.dgen._BLOCK", 4)
    torch.testing.assert_close(gradients(), before)
    torch.testing.assert_close(generate(dgen, rate=rate).embeddings, generated.embeddings)
    with torch.no_grad():
        dgen.count.weight.zero_()
        dgen.count.bias.fill_(5.0)
    everything = generate(dgen)
    assert everything.chosen.all()
    torch.testing.assert_close(
        everything.embeddings.view(30, 5, 4)[generated.chosen], generated.embeddings
    )
