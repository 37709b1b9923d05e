import pytest
import torch

from feddep.graph.graph import mean_adjacency
from feddep.methods.fedsage.neighgen import Generated, NeighbourGenerator, NeighGen
from feddep.nn.sparse import SparseMatrix
from graphs import random_graph
from small_models import drawn

GRAPH = random_graph(30, 60, seed=1)
FEATURES, SLOTS = GRAPH.num_features, 5


def new_neighgen(dropout: float = 0.0, seed: int = 0) -> NeighGen:
    return drawn(NeighGen(FEATURES, 16, 8, 2, SLOTS, 12, dropout), seed)


def generate(neighgen: NeighGen, seed: int = 0) -> Generated:
    draws = torch.Generator().manual_seed(seed)
    x = SparseMatrix.from_scipy(GRAPH.features)
    mean = SparseMatrix.from_scipy(mean_adjacency(GRAPH))
    return neighgen.generator(neighgen.encode(x, mean, draws), draws)


def predicting(counts: torch.Tensor) -> NeighbourGenerator:
    """A generator whose embeddings are the numbers of missing neighbours themselves."""
    generator = drawn(NeighbourGenerator(FEATURES, 1, SLOTS, 12, 0.0))
    with torch.no_grad():
        generator.number.weight.fill_(1)
        generator.number.bias.zero_()
    return generator


def test_it_is_the_paper_s_composition():
    neighgen = new_neighgen().eval()
    with torch.no_grad():
        neighgen.generator.number.weight *= 30  # so that numbers differ
    ours = generate(neighgen, seed=7)
    x = torch.from_numpy(GRAPH.features.toarray())
    mean = torch.from_numpy(mean_adjacency(GRAPH).toarray())
    z = x
    for convolution in neighgen.encoder.convolutions:
        z = (torch.cat([z, mean @ z], dim=1) @ convolution.weight + convolution.bias).relu()
    h = neighgen.generator
    hidden = z + torch.randn(z.shape, generator=torch.Generator().manual_seed(7))
    for layer in h.widen:
        hidden = layer(hidden).relu()
    torch.testing.assert_close(ours.count, h.number(z).relu().flatten())
    expected = {
        (v, slot): h.heads[slot](hidden[v]).tanh()
        for v in range(30)
        for slot in range(min(round(ours.count[v].item()), SLOTS))
    }
    assert len(expected) == len(ours.owner)
    assert len(set(ours.count.round().tolist())) > 2
    slots_so_far = dict.fromkeys(range(30), 0)
    for v, features in zip(ours.owner.tolist(), ours.features, strict=True):
        torch.testing.assert_close(features, expected[v, slots_so_far[v]])
        slots_so_far[v] += 1


@pytest.mark.parametrize(
    ("count", "filled"), [(-3.0, 0), (0.4, 0), (0.6, 1), (2.4, 2), (5.0, 5), (99.0, 5)]
)
def test_the_count_is_rounded_and_at_most_the_slots_for_use_only(count, filled):
    z = torch.tensor([[count], [1.0]])
    generated = predicting(z)(z, torch.Generator().manual_seed(0))
    assert (generated.owner == 0).sum() == filled
    assert (generated.owner == 1).sum() == 1
    assert generated.features.shape == (filled + 1, FEATURES)
    torch.testing.assert_close(generated.count, torch.tensor([max(count, 0.0), 1.0]))
    nothing = torch.zeros(2, 1)
    assert predicting(nothing)(nothing, torch.Generator().manual_seed(0)).features.shape == (
        0,
        FEATURES,
    )


@pytest.mark.parametrize("seed", range(5))
def test_at_first_about_one_neighbour_is_predicted_whatever_the_seed(seed):
    """So dGen's ReLU has a gradient at every node; with a bias around 0 it would be dead for half
    of the seeds.
    """
    assert (generate(new_neighgen(seed=seed).eval()).count - 1).abs().max() < 1
