"""Who is judged, and by which round: what is counted in each round, and the rules by which a
training, or a row of the table of runs, is read.

Everything is counted in every round, before and after the local steps.  An evaluation
(:data:`feddep.training.config.Evaluation`) says afterwards which of the counts is the accuracy.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from feddep.training.history import History

CorrectCount = tuple[float, int]
"""How many nodes are classified right, and of how many; or another sum over nodes
(:func:`feddep.training.evaluator.score`).
"""
ClassCounts = Sequence[Sequence[int]]
"""How many nodes of each class are classified right, how many get it, and how many have it; shape
(3, C).
"""
Loss = tuple[float, float]
"""A number of training nodes, and the mean loss on them, in nats."""
UNKNOWN: Loss = (0, math.nan)
"""That of a client from which nothing came."""
Moment = Literal["before", "after"]
"""Before or after the local steps of a round.  ``before`` is the model that a client receives at
the end of the round: before the local steps of the next one.
"""
MOMENTS: tuple[Moment, Moment] = ("before", "after")


def share(right: float, nodes: float) -> float:
    """The share of nodes that are right; not a number where there are none."""
    return right / nodes if nodes else math.nan


def total(counts: Sequence[CorrectCount]) -> CorrectCount:
    """How many of all nodes are right, and of how many."""
    return sum(right for right, _ in counts), sum(nodes for _, nodes in counts)


def mean_of_measured(values: Iterable[float]) -> float:
    """The mean of the values that are numbers; not a number where none is."""
    found = [value for value in values if not math.isnan(value)]
    return float(np.mean(found)) if found else math.nan


def macro_f1(counts: Sequence[ClassCounts]) -> float:
    """The mean over classes of F1 = 2 TP / (predicted + true), with the counts of several clients
    added up; of classes that no node gets or has there is none.
    """
    right, predicted, true = np.sum(counts, axis=0)
    either = predicted + true
    return mean_of_measured((2 * right[either > 0] / either[either > 0]).tolist())


def is_after_better(before: Any, after: Any) -> Any:
    """Whether owners use their models after the local steps: where these are right on more of all
    owners' validation nodes.  Takes two shares, or two columns of them.
    """
    return after > before


def is_unfinished(best_round: Any, rounds: int) -> bool:
    """Whether more rounds might be better: the best round is among the last 5 % of them, or of
    several models those of most are.
    """
    late = 100 * (rounds - np.atleast_1d(best_round)) < 5 * rounds
    return bool(late.mean() > 0.5)


class Counts(NamedTuple):
    """Correct answers of models at one moment of a round, client by client, each on the client's
    own subgraph.

    Attributes:
        validation: of the validation nodes.
        test: of the test nodes.
        classes: of the test nodes, by class.
    """

    validation: tuple[CorrectCount, ...]
    test: tuple[CorrectCount, ...]
    classes: tuple[ClassCounts, ...]

    @classmethod
    def of(cls, clients: Iterable[tuple[CorrectCount, CorrectCount, ClassCounts]]) -> "Counts":
        """From what :meth:`feddep.training.evaluator.Evaluator.counts` gives of each client."""
        return cls(*zip(*clients, strict=True))

    def validations(self, together: bool) -> list[float]:
        """Validation accuracy of all clients together, or of each."""
        counts = [total(self.validation)] if together else self.validation
        return [share(*each) for each in counts]


class GlobalAccuracy(NamedTuple):
    """How well a classifier does on the global graph; not a number where that is not measured.

    Attributes:
        test: accuracy of its test nodes.
        validation: of its validation nodes, classified in the same way: what choices about that way
            may be made by.
        macro_f1: of its test nodes.
    """

    test: float = math.nan
    validation: float = math.nan
    macro_f1: float = math.nan


@dataclass(frozen=True)
class Judged:
    """A history, read at the rounds that are best on the validation nodes of one moment.

    Measures over several models are means over them; local ones are over the test nodes of all
    clients.

    Attributes:
        history: what was counted.
        moment: whose validation chooses.
    """

    history: "History"
    moment: Moment

    @cached_property
    def rounds(self) -> tuple[int, ...]:
        """The best round, from 1: one for all clients together, or one a client.

        It is the one with the highest validation accuracy, the first of equals; the last where
        there are no validation nodes.
        """
        counted: Sequence[Counts] = getattr(self.history, self.moment)
        values = (counts.validations(self.history.together) for counts in counted)
        return tuple(
            len(each) if math.isnan(each[0]) else each.index(max(each)) + 1
            for each in map(list, zip(*values, strict=True))
        )

    @property
    def last(self) -> tuple[int, ...]:
        """The last round, as often as there is a best one."""
        return (len(self.history.losses),) * len(self.rounds)

    def validation(self, rounds: tuple[int, ...]) -> float:
        """Validation accuracy at the moment that chooses."""
        counted = getattr(self.history, self.moment)
        return mean_of_measured(
            counted[number - 1].validations(self.history.together)[i]
            for i, number in enumerate(rounds)
        )

    def on_graph(self, rounds: tuple[int, ...], measure: str = "test") -> list[float]:
        """The fields of :class:`GlobalAccuracy`, of each model."""
        return [
            getattr(self.history.on_graph[number - 1][i], measure)
            for i, number in enumerate(rounds)
        ]

    def local(self, rounds: tuple[int, ...], moment: Moment) -> list[CorrectCount]:
        """Share of its own test nodes that each client classifies right."""
        return self._of_clients(rounds, moment, "test")

    def local_macro_f1(self, rounds: tuple[int, ...], moment: Moment) -> float:
        """Macro-F1 of the test nodes as their owners classify them."""
        return macro_f1(self._of_clients(rounds, moment, "classes"))

    def _of_clients(self, rounds: tuple[int, ...], moment: Moment, part: str) -> list[Any]:
        counted = getattr(self.history, moment)
        clients = range(len(counted[0].test))
        numbers = rounds * len(clients) if self.history.together else rounds
        return [getattr(counted[numbers[i] - 1], part)[i] for i in clients]

    def metrics(self, number: int) -> dict[str, float]:
        """Measurements of a round, from 1: ``round``; ``loss``, the mean training loss in nats, a
        node where clients are judged together, else a client; ``validation``; ``test`` on the
        global graph; ``local_before`` and ``local_after``.
        """
        rounds = (number,) * len(self.history.on_graph[number - 1])
        losses = self.history.losses[number - 1]
        return {
            "round": number,
            "loss": mean_of_measured(mean_losses(losses, self.history.together)),
            "validation": self.validation(rounds),
            "test": mean_of_measured(self.on_graph(rounds)),
            **{f"local_{each}": share(*total(self.local(rounds, each))) for each in MOMENTS},
        }


def mean_losses(losses: Sequence[Loss], together: bool) -> list[float]:
    """The mean loss a node over all clients, or of each client; not a number where it is
    unknown.
    """
    if not together:
        return [loss for _, loss in losses]
    known = [(nodes * loss, nodes) for nodes, loss in losses if nodes]
    return [share(*map(sum, zip(*known, strict=True))) if known else math.nan]
