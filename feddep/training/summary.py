"""What is reported of a run: accuracies, training curve and bytes sent."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from feddep.training.task import RunResult


def summary(result: RunResult) -> dict[str, Any]:
    """The deterministic part of a run's results, ready for JSON; several models are averaged, round by round.

    Returns:
        ``accuracy`` and ``validation``, shares of the test and validation nodes, each with the ``best`` round on validation and
        the ``last``; likewise, where they were measured, ``global_validation``, share of the validation nodes that are right on
        the global graph, as it is tested, and ``own``, share of the test nodes that their owners classify right on their own
        subgraphs; ``best_round``, from 1, a list where there are several models; ``clients``, facts and accuracy of each client's
        own model; ``curve``, lists over the rounds; ``communication``, what crossed the boundary of the clients.
    """
    histories = result.histories

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values))

    def history(of: str) -> list[float]:
        return [mean(values) for values in zip(*(getattr(history, of) for history in histories), strict=True)]

    def on_global(rounds: Sequence[int]) -> float:
        return mean([history.global_validation[number - 1] for history, number in zip(histories, rounds, strict=True)])

    def own(rounds: Sequence[int]) -> float:
        counts = [history.local_test[number - 1] for history, number in zip(histories, rounds, strict=True)]
        return sum(right for right, _ in counts) / max(sum(nodes for _, nodes in counts), 1)

    best_rounds = [history.best_round for history in histories]
    last_rounds = [len(history.loss) for history in histories]
    measured: dict[str, dict[str, float]] = {}
    for name, of, values in (("global_validation", on_global, "global_validation"), ("own", own, "local_test")):
        if all(getattr(history, values) for history in histories):
            measured[name] = {"best": of(best_rounds), "last": of(last_rounds)}
    return {
        "accuracy": {"best": mean([h.best_test for h in histories]), "last": mean([h.test[-1] for h in histories])},
        "validation": {"best": mean([max(h.validation) for h in histories]), "last": mean([h.validation[-1] for h in histories])},
        **measured,
        "best_round": best_rounds[0] if len(histories) == 1 else best_rounds,
        "clients": [
            {**facts, "accuracy": {"best": history.best_test, "last": history.test[-1]}}
            for facts, history in zip(result.clients, histories, strict=False)
        ],
        "curve": {
            "round": list(range(1, len(histories[0].loss) + 1)),
            "loss": history("loss"),
            "validation": history("validation"),
            "test": history("test"),
        },
        "communication": result.communication,
    }
