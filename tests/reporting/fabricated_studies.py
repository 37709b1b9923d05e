"""Studies of runs that never were, with numbers that are easy to compute with."""

from typing import Any

from feddep.config.loading import validate
from feddep.experiment.plan import Run
from feddep.reporting.runs import FinishedRun
from feddep.reporting.study_data import Study, assemble

RAW: dict[str, Any] = {
    "datasets": {"cora": {}, "citeseer": {}},
    "clients": [5, 10],
    "seeds": [0, 1, 2],
    "settings": {"feddep": {"rounds": 4}},
    "methods": {"global": {}, "fedavg": {}, "feddep": {}},
    "studies": [{"name": "made_up", "kind": "sweep", "title": "A study", "runs": [{}]}],
}


def finished(
    method: str,
    seed: int,
    best: float,
    *,
    dataset: str = "cora",
    clients: int | None = 5,
    setting: str = "feddep",
    validation: float = 0.5,
    rounds: int = 4,
    own: float | None = None,
    global_validation: float | None = None,
    **provenance: Any,
) -> FinishedRun:
    """A run that is best at its last but one round, and 0.02 worse at the last."""
    test = [best - 0.1] * (rounds - 2) + [best, best - 0.02]
    result = {
        "accuracy": {"best": best, "last": best - 0.02},
        "validation": {"best": validation, "last": validation - 0.01},
        "best_round": rounds - 1,
        "clients": [],
        "curve": {
            "round": list(range(1, rounds + 1)),
            "loss": [1.0 / number for number in range(1, rounds + 1)],
            "validation": [validation] * rounds,
            "test": test,
        },
        "communication": [
            {"client": client, "direction": "up", "kind": "model", "bytes": 1000} for client in range(clients or 0)
        ],
    }
    measured = {"own": own, "global_validation": global_validation}
    result |= {name: {"best": value, "last": value} for name, value in measured.items() if value is not None}
    return FinishedRun(Run(setting, dataset, clients, method, seed), result, {"seconds": 2.0, **provenance})


def study(*runs: FinishedRun) -> Study:
    """The study of these runs, in this order."""
    return assemble(validate(RAW), "made_up", list(runs))
