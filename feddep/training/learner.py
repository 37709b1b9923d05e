"""Mini-batch training of a classifier on one graph."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from feddep.graph.graph import Graph
from feddep.graph.sampling import sample_trees
from feddep.nn.feature_table import FeatureTable
from feddep.training.config import TrainingConfig
from feddep.training.divergence import check_finite
from feddep.training.evaluator import Evaluator
from feddep.utils import seeding
from feddep.utils.coroutines import ask, waiting_allowed
from feddep.utils.errors import ConfigError


def _without_compiler(
    optimizer: type[torch.optim.Optimizer],
) -> Callable[..., torch.optim.Optimizer]:
    """The same optimiser without the decorators that exempt its methods from compilation.

    In every process that trains, they would load PyTorch's compiler: a second, as long as ``import
    torch`` takes, and 80 MiB.
    """
    names = "add_param_group", "zero_grad", "step"
    methods: dict[str, Any] = {name: inspect.unwrap(getattr(optimizer, name)) for name in names}
    step = torch.no_grad()(methods["step"])
    return type(optimizer.__name__, (optimizer,), {**methods, "step": step, "__module__": __name__})


# By these names they can be pickled.
SGD = _without_compiler(torch.optim.SGD)
Adam = _without_compiler(torch.optim.Adam)
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": partial(SGD, fused=True),
    "adam": partial(Adam, fused=True),  # a step in a half to a quarter of the unfused one's time
}


def new_optimizer(model: nn.Module, setting: TrainingConfig) -> torch.optim.Optimizer:
    """The optimiser that the setting names."""
    return OPTIMIZERS[setting.optimizer](
        model.parameters(), lr=setting.learning_rate, weight_decay=setting.weight_decay
    )


@torch.no_grad()
def _add(model: nn.Module, terms: Iterable[torch.Tensor]) -> None:
    """Add terms to the gradients of a model's weights, in their order."""
    for weight, term in zip(model.parameters(), terms, strict=True):
        weight.grad = term if weight.grad is None else weight.grad.add_(term)


class GradientLearner:
    """What learners of both kinds have: terms of methods, and the mean loss of an epoch.

    Attributes:
        regularizer: from the model to a number that is added to the loss of each batch; none by
            default.
        correction: from the model to what is added to the gradients of its weights, in their order,
            such as that of FedProx's term; none by default.  Where a term's gradient is a formula,
            this takes a fraction of the regularizer's time.
    """

    def __init__(self, name: str) -> None:
        """Begin without further terms; ``name`` is said where the training diverges."""
        self.regularizer: Callable[[Any], torch.Tensor] | None = None
        self.correction: Callable[[Any], Iterable[torch.Tensor]] | None = None
        self._name = name
        self._epochs = 0

    def correct(self, model: nn.Module) -> None:
        """Add the correction, if there is one, to the gradients."""
        if self.correction is not None:
            _add(model, self.correction(model))

    def finish(self, total: torch.Tensor, weights: Iterable[torch.Tensor], count: int = 1) -> float:
        """The mean of ``count`` losses that add up to ``total``, at the end of an epoch; makes sure
        that it and the ``weights`` have not diverged.
        """
        self._epochs += 1
        mean = float(total) / max(count, 1)
        check_finite(f"the model of {self._name} in epoch {self._epochs}", mean, weights)
        return mean


class FullBatchLearner(GradientLearner):
    """Trains a model on all training nodes of one graph at once, with all their neighbours: a step
    is an epoch.

    Attributes:
        inputs: applies models to the graph, and has its labels.
        nodes: training nodes, a tensor.
        labels: their classes.
        dropout: source of the dropout masks.
        penalty: from the model, the inputs of its last layer and its logits, of all nodes, to a
            number that is added to the loss; none by default.
    """

    def __init__(self, inputs: Evaluator, nodes: np.ndarray, seed: int, name: str) -> None:
        """Prepare for training; ``seed`` and ``name`` are as of :class:`Learner`."""
        super().__init__(name)
        self.inputs = inputs
        self.nodes = torch.from_numpy(nodes).to(inputs.labels.device)
        self.labels = inputs.labels[self.nodes]
        self.dropout = seeding.torch_generator(
            seed, name, "dropout", device=str(inputs.labels.device)
        )
        self.penalty: Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor] | None = None

    @property
    def size(self) -> int:
        """Number of training nodes."""
        return len(self.nodes)

    @property
    def steps_per_epoch(self) -> int:
        """Steps of an epoch."""
        return min(self.size, 1)

    def epoch(self, model: Any, optimizer: torch.optim.Optimizer) -> float:
        """One step; returns the mean cross-entropy a node, in nats, before it.

        Raises:
            DivergenceError: if the loss or a weight of the model is then not a finite number.
        """
        if not self.size:  # it keeps the weights that it was sent
            return 0.0
        step = Step(self, model, optimizer)
        return float(ask(step)) if waiting_allowed() else step.alone()

    def step(self, model: Any, optimizer: torch.optim.Optimizer) -> float:
        """The step, of this learner alone."""
        model.zero_grad()
        if self.penalty is None:
            hidden, logits = None, self.inputs.apply(model, self.dropout)
        else:
            hidden = model.body(self.inputs.features, self.inputs.adjacency, generator=self.dropout)
            logits = model.head(hidden, self.inputs.adjacency)
        loss = self.backward(model, hidden, logits)
        self.correct(model)
        optimizer.step()
        return self.finish(loss, model.parameters())

    def backward(
        self, model: Any, hidden: torch.Tensor | None, logits: torch.Tensor
    ) -> torch.Tensor:
        """Gradients of the loss and its further terms, from the logits of all nodes and the inputs
        of the last layer; returns the mean cross-entropy.
        """
        loss = cross_entropy(logits.index_select(0, self.nodes), self.labels)
        terms = []
        if self.penalty is not None:
            assert hidden is not None
            terms.append(self.penalty(model, hidden, logits))
        if self.regularizer is not None:
            terms.append(self.regularizer(model))
        sum(terms, loss).backward()
        return loss.detach()


@dataclass(frozen=True, eq=False)
class Step:
    """What a learner of whole graphs asks for: a step of this model by this optimiser."""

    learner: FullBatchLearner
    model: Any
    optimizer: torch.optim.Optimizer

    @property
    def evaluator(self) -> Evaluator:
        """What applies the model."""
        return self.learner.inputs

    def alone(self) -> float:
        """Make it without any other."""
        return self.learner.step(self.model, self.optimizer)


def new_learner(
    graph: Graph | Sequence[Graph],
    nodes: np.ndarray,
    setting: TrainingConfig,
    seed: int,
    name: str,
    device: str,
    inputs: Evaluator,
    table: Any = None,
) -> "Learner | FullBatchLearner":
    """A learner of the kind that the setting asks for; arguments as of :class:`Learner` and its
    graph's evaluator.
    """
    if setting.full_batch:
        return FullBatchLearner(inputs, nodes, seed, name)
    return Learner(graph, nodes, setting, seed, name, device, table)


_PLACES = 10_000
"""Most places of a sampled tree: those of all training nodes are drawn at once."""


class Learner(GradientLearner):
    """Trains a GraphSAGE, or what reads sampled trees like one, on the training nodes of one graph.

    Draws come from the learner's own streams, so that what one client draws does not depend on any
    other.

    Attributes:
        fanouts: neighbours to draw for a node in each hop, that of the roots first; may change
            between epochs.
    """

    def __init__(
        self,
        graph: Graph | Sequence[Graph],
        nodes: np.ndarray,
        setting: TrainingConfig,
        seed: int,
        name: str,
        device: str = "cpu",
        table: Any = None,
    ) -> None:
        """Prepare for training.

        Args:
            graph: the graph that neighbours are drawn from, or one for each hop, that of the roots
                first.
            nodes: training nodes.
            setting: batch size, fan-out and number of layers are used.
            seed: the run's seed.
            name: names the learner's streams, for example ``client3``.
            device: where tensors live.
            table: the inputs of nodes, as the models to come look them up; without one, the graph's
                features.

        Raises:
            ConfigError: if sampled trees would be too large.
        """
        places = (1 + setting.fanout) ** setting.layers
        if places > _PLACES:
            raise ConfigError(
                f"a fanout of {setting.fanout} makes trees of {places} nodes in "
                f"{setting.layers} layers (or hops of depth); "
                f"at most {_PLACES} are allowed, so lower one of them"
            )
        first = graph if isinstance(graph, Graph) else graph[0]
        super().__init__(name)
        self.fanouts = (setting.fanout,) * setting.layers
        self._graph = graph
        self._nodes = nodes
        self._setting = setting
        self._table = (
            FeatureTable(first.features, device, first.degrees) if table is None else table
        )
        self._labels = torch.from_numpy(first.labels).to(device)
        self._sampling = seeding.generator(seed, name, "sampling")
        self._dropout = seeding.torch_generator(seed, name, "dropout", device=device)

    @property
    def size(self) -> int:
        """Number of training nodes."""
        return len(self._nodes)

    @property
    def steps_per_epoch(self) -> int:
        """Steps of an epoch."""
        return -(-self.size // self._setting.batch_size)

    def epoch(self, model: Any, optimizer: torch.optim.Optimizer) -> float:
        """Visit every training node once, in random order, in mini-batches; return the mean loss a
        node, in nats.

        All neighbourhoods of the epoch are drawn at once: the draws do not depend on the weights,
        and one vectorised call costs a fraction of one call a batch.

        Raises:
            DivergenceError: if the loss or a weight of the model is then not a finite number.
        """
        size, batch_size = self.size, self._setting.batch_size
        order = self._sampling.permutation(self._nodes)
        trees = sample_trees(self._graph, order, self.fanouts, self._sampling)
        labels = self._labels[torch.from_numpy(order).to(self._labels.device)]
        total = torch.zeros((), device=labels.device)
        for start in range(0, size, batch_size):
            batch = slice(start, start + batch_size)
            optimizer.zero_grad()
            loss = cross_entropy(model(trees[batch], self._table, self._dropout), labels[batch])
            (loss if self.regularizer is None else loss + self.regularizer(model)).backward()
            self.correct(model)
            optimizer.step()
            total += loss.detach() * len(trees[batch])
        return self.finish(total, model.parameters(), size)
