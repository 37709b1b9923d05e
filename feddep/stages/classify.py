"""Stage ``classify``: one run of one framework, from a graph to accuracies, training curve and bytes sent."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from feddep import frameworks, plan
from feddep.problem import Outcome
from feddep.stages import _running
from feddep.storage import write_arrays, write_json

HELP = "train and test one framework on one dataset"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    _running.add_arguments(parser)
    parser.add_argument("--metrics", type=Path, required=True, metavar="FILE", help="results to write, JSON")
    parser.add_argument("--model", type=Path, required=True, metavar="FILE", help="weights to write, safetensors")


def main(arguments: argparse.Namespace) -> None:
    """Train, then write the results and the weights at the best round."""
    job = _running.read(arguments)
    key = plan.key(job.config, job.run)  # of the code that runs, even if a file changes meanwhile
    module, parameters = frameworks.configured(job.specification["framework"])
    start = time.perf_counter()
    outcome = module.run(job.problem, parameters)
    seconds = time.perf_counter() - start

    write_arrays(arguments.model, {name: tensor.numpy() for name, tensor in outcome.weights().items()})
    course = [round(second, 2) for second in outcome.histories[-1].seconds]
    provenance = {**job.provenance(seconds), "seconds_before": job.seconds, "seconds_by_round": course}
    write_json(
        arguments.metrics,
        {"key": key, "result": {"specification": job.specification, **summary(outcome)}, "provenance": provenance},
    )


def summary(outcome: Outcome) -> dict[str, Any]:
    """The deterministic part of a run's results, ready for JSON; several models are averaged, round by round."""
    histories = outcome.histories

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values))

    def course(of: str) -> list[float]:
        return [mean(values) for values in zip(*(getattr(history, of) for history in histories), strict=True)]

    best_rounds = [history.best_round for history in histories]
    return {
        "accuracy": {"best": mean([h.best_test for h in histories]), "last": mean([h.test[-1] for h in histories])},
        "validation": {"best": mean([max(h.validation) for h in histories]), "last": mean([h.validation[-1] for h in histories])},
        "best_round": best_rounds[0] if len(histories) == 1 else best_rounds,
        "clients": [
            {**facts, "accuracy": {"best": history.best_test, "last": history.test[-1]}}
            for facts, history in zip(outcome.clients, histories, strict=False)
        ],
        "curve": {
            "round": list(range(1, len(histories[0].loss) + 1)),
            "loss": course("loss"),
            "validation": course("validation"),
            "test": course("test"),
        },
        "ledger": outcome.ledger,
    }
