"""The history of a training: what was measured after each round, and the weights at the best of
them.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from torch import Tensor, nn

from feddep.training.divergence import check_finite

CorrectCount = tuple[float, int]
"""How many nodes are classified right, and of how many; or another sum over nodes
(:func:`feddep.training.evaluator.score`).
"""


def share(right: float, nodes: float) -> float:
    """The share of nodes that are right; not a number where there are none."""
    return right / nodes if nodes else math.nan


def total(counts: Sequence[CorrectCount]) -> CorrectCount:
    """How many of all nodes are right, and of how many."""
    return sum(right for right, _ in counts), sum(nodes for _, nodes in counts)


def mean_of_measured(values: Sequence[float]) -> float:
    """The mean of the values that are numbers; not a number where none is."""
    found = [value for value in values if not math.isnan(value)]
    return float(np.mean(found)) if found else math.nan


@dataclass
class History:
    """Measurements of one model, a round each.

    The best round is the one with the highest validation accuracy, the first of equals; the last
    where there are no validation nodes.  Test accuracy is recorded beside it and never chosen by.

    Attributes:
        loss: mean training loss, in nats a node.
        validation: validation accuracy; not a number where there are no validation nodes.
        test: test accuracy.
        global_validation: accuracy of the global graph's validation nodes, classified as its test
            nodes are; may be empty.
        local_before: how many test nodes their owners classify right, on their own subgraphs, with
            the model that they receive at the end of the round: before the local steps of the next
            one; may be empty.
        local_after: the same with each client's own model at the end of the round's local steps,
            before the server aggregates.
        seconds: time since the history began, measured by the clock.
        best_weights: the model's weights at the best round.
    """

    loss: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)
    global_validation: list[float] = field(default_factory=list)
    local_before: list[CorrectCount] = field(default_factory=list)
    local_after: list[CorrectCount] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    _begun: float = field(default_factory=time.perf_counter, repr=False, compare=False)

    def record(
        self,
        model: nn.Module,
        loss: float,
        validation: float,
        test: float,
        global_validation: float | None = None,
    ) -> None:
        """Append a round: mean training loss (nats a node) and accuracies (shares of 1).

        Raises:
            DivergenceError: if the loss or a weight of the model is not a finite number.
        """
        check_finite("the model", loss, model.state_dict().values())
        if not self.validation or math.isnan(validation) or validation > max(self.validation):
            self.best_weights = {
                name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()
            }
        self.loss.append(loss)
        self.validation.append(validation)
        self.test.append(test)
        if global_validation is not None:
            self.global_validation.append(global_validation)
        self.seconds.append(time.perf_counter() - self._begun)

    def record_local(self, before: CorrectCount, after: CorrectCount) -> None:
        """Append what owners classify right in a round."""
        self.local_before.append(before)
        self.local_after.append(after)

    @property
    def best_round(self) -> int:
        """The round best on validation, counted from 1."""
        if math.isnan(self.validation[0]):
            return len(self.validation)
        return self.validation.index(max(self.validation)) + 1

    @property
    def best_test(self) -> float:
        """Test accuracy at the round best on validation."""
        return self.test[self.best_round - 1]


class Scores(NamedTuple):
    """What each client's model classifies right on the client's own subgraph, of its validation and
    of its test nodes.
    """

    validation: tuple[CorrectCount, ...]
    test: tuple[CorrectCount, ...]

    @classmethod
    def of(cls, clients: Iterable[Sequence[CorrectCount]]) -> "Scores":
        """From validation and test of each client."""
        return cls(*zip(*clients, strict=True))


@dataclass
class OwnersHistory:
    """The scores of all clients in each round, before and after its local steps, with the weights
    of the end of a round.

    ``before`` is the model that a client receives at the end of the round: before the local steps
    of the next one.

    Attributes:
        before, after: a list over the rounds.
        history: mean loss; validation and local accuracies over all clients' nodes, validation
            before the local steps; the server's model on the global graph, and its weights, where
            there is one.
    """

    before: list[Scores] = field(default_factory=list)
    after: list[Scores] = field(default_factory=list)
    history: History = field(default_factory=History)

    def record(
        self, loss: float, before: Scores, after: Scores, model: Any = None, accuracy: Any = None
    ) -> None:
        """Append a round; ``accuracy`` is the :class:`feddep.training.task.GlobalAccuracy` of the
        server's ``model``.
        """
        self.before.append(before)
        self.after.append(after)
        on_graph = (math.nan,) if accuracy is None else accuracy
        self.history.record(
            nn.Module() if model is None else model,
            loss,
            share(*total(before.validation)),
            *on_graph,
        )
        self.history.record_local(total(before.test), total(after.test))

    def best_round(self, when: Literal["before", "after"]) -> int:
        """The round, from 1, whose models are best on all clients' validation nodes; the first of
        equals.
        """
        right = [total(scores.validation)[0] for scores in getattr(self, when)]
        return right.index(max(right)) + 1
