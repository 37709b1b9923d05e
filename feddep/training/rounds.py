"""The rounds of a training: a progress bar, what users are told after each, and in which one a
training diverged.
"""

from collections.abc import Callable

from feddep.training.history import History
from feddep.training.task import Task
from feddep.utils.errors import DivergenceError
from feddep.utils.progress import track


def run_rounds(task: Task, history: History, one_round: Callable[[int], None]) -> None:
    """Call ``one_round`` with 1 … rounds; after each, tell the task's ``on_round`` what the history
    measured (:meth:`feddep.training.evaluation.Judged.metrics`).

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
            task.on_round(history.judged[0].metrics(number))
