"""The report of a run: accuracies, training curve and bytes sent."""

import math
from typing import Any

from feddep.training.evaluation import MOMENTS, mean_of_measured, share, total
from feddep.training.task import RunResult

DIVERGED: dict[str, Any] = {
    "accuracy": {},
    "macro_f1": {"global": math.nan, **dict.fromkeys(MOMENTS, math.nan)},
    "best_round": 1,
    "stalled": True,
    "clients": [],
    "curve": {"round": [1]},
    "communication": [],
}
"""The :func:`summary` of a trial of a search that diverged: nothing was measured."""


def summary(result: RunResult) -> dict[str, Any]:
    """The deterministic part of a run's results, ready for JSON; several models are averaged, round
    by round.

    Returns:
        ``accuracy`` and ``validation``, shares of the test and validation nodes, each with the
        ``best`` round on validation and the ``last``; likewise, where it was measured,
        ``global_validation``, share of the validation nodes that are right on the global graph, as
        it is tested; and ``local_before`` and ``local_after``, share of the test nodes that their
        owners classify right on their own subgraphs, before and after the local steps of a round;
        ``macro_f1`` at the best round, on the ``global`` graph, and as owners classify ``before``
        and ``after`` the local steps; ``best_round``, from 1, a list where there are several
        models; ``stalled``, whether it is no better than a constant answer; ``clients``, facts and
        accuracy of each client's own model; ``curve``, lists over the rounds
        (:attr:`feddep.training.task.RunResult.curve`); ``communication``, what crossed the
        boundary of the clients.  Where owners judge, what is before and what is after the local
        steps is each at its own best round, ``best_round`` has both, ``validation`` is that before
        the local steps and ``validation_after`` that after them, and a client's best accuracy is a
        pair.
    """
    judged = result.history.judged
    first, at = judged[0], dict(zip(MOMENTS, [judged[0], judged[-1]], strict=True))

    def on_graph(measure: str) -> dict[str, float]:
        ends = {"best": first.rounds, "last": first.last}
        return {
            end: mean_of_measured(first.on_graph(rounds, measure)) for end, rounds in ends.items()
        }

    if len(judged) > 1:
        pairs = zip(*(each.local(each.rounds, moment) for moment, each in at.items()), strict=True)
        own: list[Any] = [{"best": [share(*each) for each in pair]} for pair in pairs]
    else:
        ends = zip(first.on_graph(first.rounds), first.on_graph(first.last), strict=True)
        own = [dict(zip(("best", "last"), both, strict=True)) for both in ends]
    best = [number for each in judged for number in each.rounds]
    validation = on_graph("validation")
    return {
        "accuracy": on_graph("test"),
        **({} if math.isnan(validation["last"]) else {"global_validation": validation}),
        **{
            name: {"best": each.validation(each.rounds), "last": each.validation(each.last)}
            for name, each in zip(("validation", "validation_after"), judged, strict=False)
        },
        **{
            f"local_{moment}": {
                "best": share(*total(each.local(each.rounds, moment))),
                "last": share(*total(each.local(each.last, moment))),
            }
            for moment, each in at.items()
        },
        "macro_f1": {
            "global": mean_of_measured(first.on_graph(first.rounds, "macro_f1")),
            **{moment: each.local_macro_f1(each.rounds, moment) for moment, each in at.items()},
        },
        "best_round": best if len(best) > 1 else best[0],
        "stalled": result.stalled,
        "clients": [
            {**facts, "accuracy": accuracy}
            for facts, accuracy in zip(result.clients, own, strict=False)
        ],
        "curve": result.curve,
        "communication": result.communication,
    }
