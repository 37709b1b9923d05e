"""The rounds of a training: a progress bar, what users are told after each, and in which one a
training diverged.
"""

from collections.abc import Callable, Sequence

from feddep.training.history import History, mean_of_measured
from feddep.training.task import Task
from feddep.utils.errors import DivergenceError
from feddep.utils.progress import track


def run_rounds(task: Task, histories: Sequence[History], one_round: Callable[[int], None]) -> None:
    """Call ``one_round`` with 1 … rounds; after each, tell the task's ``on_round`` what the
    histories measured.

    Raises:
        DivergenceError: where one is raised within, with the round.
    """
    for number in track(range(1, task.setting.rounds + 1), task.name):
        try:
            one_round(number)
        except DivergenceError as error:
            error.round = number
            raise
        if task.on_round is not None:
            task.on_round(metrics(histories, number))


def metrics(histories: Sequence[History], number: int) -> dict[str, float]:
    """What several models measured in a round, from 1: means over models that did; of local
    accuracies over their test nodes.

    Returns:
        ``round``, ``loss``, ``validation``, ``test``, and where they were measured ``local_before``
        and ``local_after``.
    """
    means = {
        name: [getattr(history, name)[number - 1] for history in histories]
        for name in ("loss", "validation", "test")
    }
    local = {
        name: local_accuracy(histories, name, [number] * len(histories))
        for name in LOCAL
        if measured(histories, name)
    }
    return {
        "round": number,
        **{name: mean_of_measured(values) for name, values in means.items()},
        **local,
    }


LOCAL = ("local_before", "local_after")
"""The local accuracies of a history: before and after the local steps of a round."""


def measured(histories: Sequence[History], name: str) -> bool:
    """Whether every history has measured something."""
    return all(getattr(history, name) for history in histories)


def local_accuracy(histories: Sequence[History], name: str, rounds: Sequence[int]) -> float:
    """Share of the test nodes that their owners classify right, each model in a round of its
    own.
    """
    counts = [
        getattr(history, name)[number - 1]
        for history, number in zip(histories, rounds, strict=True)
    ]
    return float(sum(right for right, _ in counts) / max(sum(nodes for _, nodes in counts), 1))
