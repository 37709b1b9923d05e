"""Clients that are trained and evaluated together: where all of them wait for a step on all their
nodes, or for the counts of their models, one computation does it for all.

A client knows nothing of it: its code runs until it asks its learner for an epoch, or its evaluator
for counts (:mod:`feddep.utils.coroutines`).  Numbers are the same to the last bit.
"""

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, nll_loss

from feddep.graph.split import Split
from feddep.nn.layered import LayeredClassifier, is_convolution
from feddep.nn.sparse import SparseMatrix
from feddep.nn.stacked import (
    Gradients,
    StackedGraphs,
    StackedModels,
    StackedNodes,
    StackedPass,
)
from feddep.training.evaluator import (
    Counting,
    Evaluated,
    Evaluator,
    check_logits,
    evaluated,
    evaluated_nodes,
)
from feddep.training.learner import SGD, Adam, FullBatchLearner, Step
from feddep.utils.coroutines import run_together

T = TypeVar("T")
_LARGE = 2**25
"""Features that are not 0, of all clients, beyond which each client is computed by itself: a second
copy of them would be held.
"""


def _inherits(model: Any, *methods: str) -> bool:
    """Whether the model has these methods as all layered classifiers do."""
    return all(getattr(type(model), each) is getattr(LayeredClassifier, each) for each in methods)


def _shapes(model: Any, evaluator: Evaluator) -> Hashable:
    """What models have in common that can be computed together; none where one cannot be."""
    additions = getattr(model, "additions", ())
    mended = evaluator.embeddings is not None
    stackable = (
        isinstance(model, LayeredClassifier)
        and _inherits(model, "full", "body")
        and (bool(additions) if mended else _inherits(model, "_complete_full"))
        and len(model.layers) > 1
        and all(map(is_convolution, model.layers))
        and type(evaluator) is Evaluator
        and isinstance(evaluator.features, SparseMatrix)
    )
    if not stackable:
        return None
    matrices = *(layer.weight for layer in model.layers), *additions
    return type(model), *(tuple(matrix.shape) for matrix in matrices)


class Together:
    """Computes for several clients at once."""

    def __init__(self, stacked: bool | None = None) -> None:
        """``stacked`` says whether, by default where the clients' graphs are small."""
        self._stacked = stacked
        recent = lru_cache(8)  # of the sets of clients that ask, of which absence makes many
        self._shapes, self._models = lru_cache(None)(_shapes), recent(StackedModels)
        self._graphs, self._evaluated = recent(_graphs), recent(_evaluated)
        self._trained = recent(_trained)
        self._optimizers: Sequence[torch.optim.Optimizer] = ()
        self._joint: torch.optim.Optimizer | None = None

    def run(self, functions: Sequence[Callable[[], T]]) -> list[T]:
        """What the functions return, each of one client."""
        if self._stacked is False:
            return [function() for function in functions]
        return run_together(functions, self._answers)

    def _answers(self, questions: Sequence[Step | Counting]) -> list[Any]:
        answers: list[Any] = []
        for (kind, shapes), group in itertools.groupby(
            questions, lambda each: (type(each), self._shapes(each.model, each.evaluator))
        ):
            asked: list[Any] = list(group)
            if shapes is None or not self._worthwhile(asked):
                answers += [question.alone() for question in asked]
            else:
                answers += self._steps(asked) if kind is Step else self._counts(asked)
        return answers

    def _worthwhile(self, asked: Sequence[Step | Counting]) -> bool:
        """Whether several models are to be stacked, each one's weights being its own."""
        if len(asked) == 1 or len({id(each.model) for each in asked}) < len(asked):
            return False
        entries = sum(each.evaluator.graph.features.nnz for each in asked)
        return bool(self._stacked) or entries <= _LARGE

    def _stack(self, questions: Sequence[Any]) -> tuple[StackedModels, StackedGraphs]:
        return (
            self._models(tuple(each.model for each in questions)),
            self._graphs(
                tuple((each.evaluator.features, each.evaluator.adjacency) for each in questions)
            ),
        )

    @torch.no_grad()
    def _counts(self, questions: Sequence[Counting]) -> list[Any]:
        models, graphs = self._stack(questions)
        nodes, counter = self._evaluated(
            graphs, tuple((each.evaluator, each.split) for each in questions)
        )
        embeddings = [each.evaluator.embeddings for each in questions]
        computed = StackedPass(models, graphs, embeddings)
        hidden = computed.body()
        if _inherits(questions[0].model, "head"):
            logits = computed.head(nodes)
        else:
            logits = torch.cat(
                [
                    each.model.head(hidden[part], each.evaluator.adjacency)[
                        evaluated_nodes(each.split)
                    ]
                    for each, part in zip(questions, graphs.nodes.parts, strict=True)
                ]
            )
        check_logits(logits)
        return counter.counts(logits, questions[0].metric)

    def _steps(self, steps: Sequence[Step]) -> list[float]:
        models, graphs = self._stack(steps)
        learners = [step.learner for step in steps]
        for parameter in models.parameters:
            parameter.grad = None
        embeddings = [learner.inputs.embeddings for learner in learners]
        generators = [learner.dropout for learner in learners]
        computed = StackedPass(models, graphs, embeddings, generators)
        with torch.no_grad():
            hidden = computed.body()
        if _inherits(steps[0].model, "head") and not any(each.penalty for each in learners):
            losses, gradients = self._whole(computed, graphs, learners)
            terms = computed.assign(gradients)
            for step in steps:
                if step.learner.regularizer is not None:
                    terms.append(step.learner.regularizer(step.model))
        else:
            losses, gradient = _heads(steps, hidden, graphs.nodes.parts)
            with torch.no_grad():
                gradients = computed.body_gradients(gradient)
            terms = computed.assign(gradients)
        # A regularizer whose weight is 0 may be a number.
        if terms := [term for term in terms if term.requires_grad]:
            sum(terms[1:], terms[0]).backward()
        for step in steps:
            step.learner.correct(step.model)
        self._optimize([step.optimizer for step in steps])
        with torch.no_grad():
            sums = torch.stack([*losses, *(weight.sum() for weight in models.parameters)]).sum()
        finite = math.isfinite(float(sums))  # else each is looked at
        return [
            step.learner.finish(loss, () if finite else step.model.parameters())
            for step, loss in zip(steps, losses, strict=True)
        ]

    @torch.no_grad()
    def _whole(
        self,
        computed: StackedPass,
        graphs: StackedGraphs,
        learners: Sequence[FullBatchLearner],
    ) -> tuple[list[Tensor], list[Gradients]]:
        """Cross-entropy of each model, from the inputs of the last layer on, and the gradients of
        all layers.
        """
        nodes, labels, shares = self._trained(
            graphs, tuple((each.nodes, each.labels) for each in learners)
        )
        logits = computed.head(nodes)
        found = log_softmax(logits, 1)
        losses = [nll_loss(found[part], labels[part, 0]) for part in nodes.parts]
        gradient = torch.zeros_like(logits).scatter_(1, labels, shares)
        gradient = torch.ops.aten._log_softmax_backward_data(gradient, found, 1, found.dtype)
        gradient, of_head = computed.head_gradient(gradient, nodes)
        return losses, [*computed.body_gradients(gradient), of_head]

    def _optimize(self, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        """The steps of all optimisers, as one of all parameters where their options are the
        same.
        """
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        options, *others = ({**group, "params": None} for group in groups)
        if type(optimizers[0]) not in (SGD, Adam) or any(other != options for other in others):
            for optimizer in optimizers:
                optimizer.step()
            return
        if self._optimizers != optimizers:
            self._optimizers, self._joint = optimizers, _joint(optimizers)
        assert self._joint is not None
        (group,) = self._joint.param_groups
        group.update({**options, "params": group["params"]})
        self._joint.step()


def _joint(optimizers: Sequence[Any]) -> torch.optim.Optimizer:
    """An optimiser of all weights, whose state is that of the given ones."""
    weights = [(weight, each) for each in optimizers for weight in each.param_groups[0]["params"]]
    joint: torch.optim.Optimizer = type(optimizers[0])([weight for weight, _ in weights])
    joint.state.update((weight, optimizer.state[weight]) for weight, optimizer in weights)
    return joint


def _graphs(matrices: Sequence[tuple[SparseMatrix, SparseMatrix]]) -> StackedGraphs:
    """The graphs of evaluators, given by features and adjacency."""
    features, adjacencies = zip(*matrices, strict=True)
    return StackedGraphs(features, adjacencies)


def _evaluated(
    graphs: StackedGraphs, clients: Sequence[tuple[Evaluator, Split]]
) -> tuple[StackedNodes, Evaluated]:
    """Validation and test nodes of the clients."""
    nodes = graphs.nodes.restrict([evaluated_nodes(split) for _, split in clients])
    return nodes, evaluated([(evaluator.graph, split) for evaluator, split in clients])


def _trained(
    graphs: StackedGraphs, sets: Sequence[tuple[Tensor, Tensor]]
) -> tuple[StackedNodes, Tensor, Tensor]:
    """Training nodes, from each graph's with their classes: all of them, their classes, shape
    (k, 1), and what the gradient of a mean over their graph's has there, the same shape.
    """
    nodes, labels = zip(*sets, strict=True)
    shares = [each.new_ones(len(each), dtype=torch.float32).div_(-len(each)) for each in labels]
    return (
        graphs.nodes.restrict([each.cpu().numpy() for each in nodes]),
        torch.cat(labels).unsqueeze(1),
        torch.cat(shares).unsqueeze(1),
    )


def _heads(
    steps: Sequence[Step], hidden: Tensor, parts: Sequence[slice]
) -> tuple[list[Tensor], Tensor]:
    """The last layer and the loss of each client by itself, with its gradients; cross-entropies,
    and the gradient of the last layer's inputs.
    """
    losses, gradient = [], torch.empty_like(hidden)
    for step, part in zip(steps, parts, strict=True):
        own = hidden[part].requires_grad_()
        logits = step.model.head(own, step.evaluator.adjacency)
        losses.append(step.learner.backward(step.model, own, logits))
        assert own.grad is not None
        gradient[part] = own.grad
    return losses, gradient
