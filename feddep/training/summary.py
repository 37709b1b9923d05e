"""What is reported of a run: accuracies, training curve and bytes sent."""

from collections.abc import Iterable, Mapping
from typing import Any

from feddep.training.history import OwnersHistory, mean_of_measured, share, total
from feddep.training.rounds import LOCAL, local_accuracy, measured, metrics
from feddep.training.task import RunResult


def summary(result: RunResult) -> dict[str, Any]:
    """The deterministic part of a run's results, ready for JSON; several models are averaged, round
    by round.

    Returns:
        ``accuracy`` and ``validation``, shares of the test and validation nodes, each with the
        ``best`` round on validation and the ``last``; likewise, where they were measured,
        ``global_validation``, share of the validation nodes that are right on the global graph, as
        it is tested, and ``local_before`` and ``local_after``, share of the test nodes that their
        owners classify right on their own subgraphs, before and after the local steps of a round;
        ``best_round``, from 1, a list where there are several models; ``stalled``, whether it is no
        better than a constant answer; ``clients``, facts and accuracy of each client's own model;
        ``curve``, lists over the rounds of what :func:`feddep.training.rounds.metrics` gives;
        ``communication``, what crossed the boundary of the clients.  Where owners judged,
        ``local_before`` and ``local_after`` are each at their own best round, ``best_round`` has
        both, ``validation`` is that before the local steps and ``validation_after`` that after
        them, and a client's best accuracy is a pair.

    Raises:
        ValueError: if the models have been trained for different numbers of rounds.
    """
    histories = result.histories
    best_rounds = [history.best_round for history in histories]
    last_rounds = [len(history.loss) for history in histories]
    if len(set(last_rounds)) > 1:
        raise ValueError(
            f"the models have been trained for different numbers of rounds: {last_rounds}"
        )

    def mean(name: str, rounds: list[int]) -> float:
        return mean_of_measured(
            [
                getattr(history, name)[number - 1]
                for history, number in zip(histories, rounds, strict=True)
            ]
        )

    def best_and_last(of: Any, name: str) -> dict[str, float]:
        return {"best": of(name, best_rounds), "last": of(name, last_rounds)}

    found = {
        "accuracy": best_and_last(mean, "test"),
        "validation": best_and_last(mean, "validation"),
    }
    if measured(histories, "global_validation"):
        found["global_validation"] = best_and_last(mean, "global_validation")
    for name in LOCAL:
        if measured(histories, name):
            found[name] = best_and_last(
                lambda name, rounds: local_accuracy(histories, name, rounds), name
            )
    rounds = [metrics(histories, number) for number in range(1, last_rounds[0] + 1)]
    reported = {
        **found,
        "best_round": best_rounds[0] if len(histories) == 1 else best_rounds,
        "stalled": result.stalled,
        "clients": [
            {**facts, "accuracy": {"best": history.best_test, "last": history.test[-1]}}
            for facts, history in zip(result.clients, histories, strict=False)
        ],
        "curve": {name: [each[name] for each in rounds] for name in rounds[0]},
        "communication": result.communication,
    }
    return (
        reported
        if result.owners is None
        else {**reported, **_of_owners(result.owners, result.clients)}
    )


def _of_owners(owners: OwnersHistory, facts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Accuracies before and after the local steps, each at the round whose models are best on all
    clients' validation nodes.
    """
    found: dict[str, Any] = {
        "best_round": [owners.best_round("before"), owners.best_round("after")]
    }
    own = []
    for when, number in zip(("before", "after"), found["best_round"], strict=True):
        best, last = getattr(owners, when)[number - 1], getattr(owners, when)[-1]
        for name, part in (("validation", "validation"), ("local", "test")):
            shares = (share(*total(getattr(scores, part))) for scores in (best, last))
            found[f"{name}_{when}"] = dict(zip(("best", "last"), shares, strict=True))
        own.append([share(*each) for each in best.test])
    found["validation"] = found.pop("validation_before")
    clients = zip(facts, zip(*own, strict=True), strict=True)
    return {
        **found,
        "clients": [{**fact, "accuracy": {"best": list(both)}} for fact, both in clients],
    }
