"""DP-SGD against a loop that computes the gradient of one example after the other, and its noise
against its law.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from feddep.graph.graph import Graph
from feddep.graph.sampling import SampledTrees, sample_trees
from feddep.methods.feddep.fused import MendedTable, fused_classifier
from feddep.nn.feature_table import FeatureTable
from feddep.nn.sage import GraphSAGE
from feddep.privacy.accountant import PrivacyError
from feddep.privacy.dpsgd import Privacy, PrivateLearner, start_gradients
from feddep.privacy.dpsgd_accounting import poisson_sampling
from feddep.privacy.ghost_clipping import add_clipped, recorded
from feddep.training.config import TrainingConfig
from feddep.training.learner import new_optimizer
from feddep.utils import seeding
from graphs import graphs, random_graph
from small_models import flat

MODELS = ["sage", "authors", "paper"]
WIDTH = 3
"""Width d_z of the embeddings here."""


def new_model(
    kind: str, graph: Graph, layers: int = 2, dropout: float = 0.0, hidden: int = 5
) -> nn.Module:
    model: nn.Module
    if kind == "sage":
        model = GraphSAGE(graph.num_features, hidden, graph.num_classes, layers, dropout)
    else:
        model = fused_classifier(
            kind, graph.num_features, WIDTH, hidden, graph.num_classes, layers, dropout
        )
    model.reset_parameters(torch.Generator().manual_seed(3))
    return model


def new_table(kind: str, graph: Graph) -> FeatureTable | MendedTable:
    z = torch.randn(graph.num_nodes, WIDTH, generator=torch.Generator().manual_seed(4))
    return FeatureTable(graph.features) if kind == "sage" else MendedTable(graph.features, z)


def some_trees(
    graph: Graph, layers: int = 2, fanout: int = 3, batch: int = 5
) -> tuple[SampledTrees, Tensor]:
    """Trees with some roots that stand there twice, and the labels of the roots."""
    rng = np.random.default_rng(5)
    roots = rng.integers(0, graph.num_nodes, batch)
    return sample_trees(graph, roots, (fanout,) * layers, rng), torch.from_numpy(
        graph.labels[roots]
    )


def gradient_of(model: nn.Module) -> Tensor:
    return flat([parameter.grad for parameter in model.parameters()])


def one_by_one(
    model: nn.Module, table: object, trees: SampledTrees, labels: Tensor
) -> list[Tensor]:
    """The gradient of every example, each from a batch of its own."""
    gradients = []
    for i in range(len(trees)):
        loss = cross_entropy(model(trees[i : i + 1], table, None), labels[i : i + 1])
        gradients.append(flat(list(torch.autograd.grad(loss, list(model.parameters())))))
    return gradients


def clipped(gradients: list[Tensor], clip: float) -> Tensor:
    """The sum of the gradients, each clipped."""
    return sum(
        gradient * min(1.0, clip / max(float(gradient.norm()), 1e-30)) for gradient in gradients
    )


def ours(
    model: nn.Module, table: object, graph: Graph, trees: SampledTrees, labels: Tensor, clip: float
) -> tuple[Tensor, Tensor]:
    """The same sum, and the norms, from the module."""
    start_gradients(model, 0.0, torch.Generator())
    logits, outputs = recorded(model, trees, table, graph.num_nodes)
    norms = add_clipped(model, outputs, cross_entropy(logits, labels, reduction="none"), clip)
    return gradient_of(model), norms


@pytest.mark.parametrize("kind", MODELS)
@given(
    graph=graphs(),
    layers=st.integers(1, 3),
    fanout=st.integers(1, 3),
    clip=st.sampled_from([0.01, 1.0, 1e6]),
)
def test_the_clipped_sum_is_that_of_a_loop_over_examples(kind, graph, layers, fanout, clip):
    model, table = new_model(kind, graph, layers), new_table(kind, graph)
    trees, labels = some_trees(graph, layers, fanout)
    expected = one_by_one(model, table, trees, labels)
    total, norms = ours(model, table, graph, trees, labels, clip)
    np.testing.assert_allclose(
        norms, [float(gradient.norm()) for gradient in expected], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(
        total, clipped(expected, clip), rtol=1e-3, atol=1e-5 * min(clip, 1.0) * len(trees)
    )


@pytest.mark.parametrize("kind", MODELS)
def test_with_dropout_the_sum_is_that_of_the_same_masks(kind):
    graph = random_graph(30, 60)
    model, table = new_model(kind, graph, dropout=0.5, hidden=16), new_table(kind, graph)
    trees, labels = some_trees(graph, batch=6)
    start_gradients(model, 0.0, torch.Generator())
    logits, outputs = recorded(
        model, trees, table, graph.num_nodes, torch.Generator().manual_seed(1)
    )
    losses = cross_entropy(logits, labels, reduction="none")
    parameters = list(model.parameters())
    expected = [
        flat(list(torch.autograd.grad(loss, parameters, retain_graph=True))) for loss in losses
    ]
    assert any(
        not torch.allclose(a, b)
        for a, b in zip(expected, one_by_one(model, table, trees, labels), strict=True)
    )
    norms = add_clipped(model, outputs, losses, 0.3)
    np.testing.assert_allclose(
        norms, [float(gradient.norm()) for gradient in expected], rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(gradient_of(model), clipped(expected, 0.3), rtol=1e-3, atol=1e-5)


def test_a_parameter_without_a_rule_stops_the_training():
    class Scaled(GraphSAGE):
        def __init__(self, *sizes: int | float) -> None:
            super().__init__(*sizes)
            self.factor = nn.Parameter(torch.ones(()))

        def forward(self, *inputs: object) -> Tensor:
            return super().forward(*inputs) * self.factor

    graph = random_graph(10, 20)
    model = Scaled(graph.num_features, 5, 3, 2, 0.0)
    model.reset_parameters(torch.Generator().manual_seed(1))
    trees, labels = some_trees(graph)
    with pytest.raises(TypeError):
        ours(model, new_table("sage", graph), graph, trees, labels, 1.0)


SETTING = TrainingConfig(
    optimizer="sgd", learning_rate=0.5, batch_size=8, fanout=3, rounds=5, hidden_channels=16
)


def new_learner(
    kind: str,
    graph: Graph,
    nodes: int,
    privacy: Privacy,
    setting: TrainingConfig = SETTING,
    seed: int = 0,
) -> PrivateLearner:
    table = new_table(kind, graph)
    return PrivateLearner(
        graph, np.arange(nodes), setting, seed, "client0", table=table, privacy=privacy
    )


class Seen:
    """Stands for an optimiser; keeps the gradients that it is given."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.gradients: list[Tensor] = []

    def step(self) -> None:
        self.gradients.append(gradient_of(self.model).clone())


@pytest.mark.parametrize("kind", MODELS)
def test_without_noise_and_clipping_it_is_full_batch_gradient_descent(kind):
    graph = random_graph(20, 50)
    setting = SETTING.replace(learning_rate=0.1, batch_size=20, rounds=1, dropout=0.0)
    model = new_model(kind, graph, hidden=16)
    optimizer = Seen(model)
    loss = new_learner(kind, graph, 20, Privacy(0.0, 1e6), setting).epoch(model, optimizer)
    rng = seeding.generator(0, "client0", "sampling")  # gives the batch, then the trees
    rng.integers(20, size=20)
    trees = sample_trees(graph, np.arange(20), (3,) * 2, rng)
    mean = cross_entropy(model(trees, new_table(kind, graph)), torch.from_numpy(graph.labels))
    expected = flat(list(torch.autograd.grad(mean, list(model.parameters()))))
    assert loss == pytest.approx(mean.item(), rel=1e-5)
    torch.testing.assert_close(optimizer.gradients[0], expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("kind", MODELS)
def test_noise_is_gaussian_on_every_parameter_and_new_in_each_step(kind):
    graph = random_graph(60, 100, features=300)
    model = new_model(kind, graph, hidden=16)
    optimizer = Seen(model)
    # The gradients do not show.
    new_learner(kind, graph, 60, Privacy(sigma=1e3, clip=1e-3)).epoch(model, optimizer)
    first, second = (gradient * SETTING.batch_size for gradient in optimizer.gradients[:2])
    assert kstest(first.numpy(), "norm").pvalue > 1e-4
    size = len(first)
    assert abs(float(first @ second)) / size < 4.5 / math.sqrt(size)
    assert float(first.std()) == pytest.approx(1.0, abs=4.5 / math.sqrt(2 * size) + 0.01)
    for parameter in model.parameters():
        assert parameter.grad.count_nonzero() == parameter.numel()


def test_every_node_is_sampled_with_the_rate_that_is_accounted_for():
    graph = random_graph(30, 40)
    learner = new_learner("sage", graph, 27, Privacy())
    assert learner.rate == 8 / 27
    assert learner.steps_per_epoch == 4
    batches = [learner._draw_batch() for _ in range(4000)]
    counts = np.bincount(np.concatenate(batches), minlength=30)
    deviation = math.sqrt(4000 * learner.rate * (1 - learner.rate))
    assert (abs(counts[:27] - 4000 * learner.rate) < 4.5 * deviation).all()
    assert not counts[27:].any()
    sizes = np.array([len(batch) for batch in batches])
    # Independent nodes, no fixed size.
    assert sizes.var() == pytest.approx(27 * learner.rate * (1 - learner.rate), rel=0.15)


@pytest.mark.parametrize(
    ("nodes", "rate", "steps"),
    [(8, 1.0, 1), (3, 1.0, 1), (1, 1.0, 1), (9, 8 / 9, 2), (17, 8 / 17, 3), (0, 0.0, 0)],
)
def test_rate_and_steps_are_those_that_are_accounted_for(nodes, rate, steps):
    graph = random_graph(20, 20)
    learner = new_learner("sage", graph, nodes, Privacy())
    model = new_model("sage", graph)
    assert (learner.size, learner.rate, learner.steps_per_epoch) == (nodes, rate, steps)
    loss = learner.epoch(model, new_optimizer(model, SETTING))
    assert poisson_sampling(nodes, 8, 1) == (rate, learner.steps)
    assert poisson_sampling(nodes, 8, 3) == (rate, 3 * steps)
    assert (loss > 0) == (nodes > 0)
    for wrong in ((-1, 8, 1), (5, 0, 1), (5, 8, 0)):
        with pytest.raises(PrivacyError):
            poisson_sampling(*wrong)
