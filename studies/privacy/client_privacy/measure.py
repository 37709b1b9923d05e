"""What neighbour sampling guarantees each client of a run, and DP-SGD if the method trains by
it.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from feddep.privacy.accountant import Guarantee, SamplingParameters
from feddep.training.task import Task
from studies.measuring import Case, Tables
from studies.privacy.client_privacy.client_guarantees import (
    ClientGuarantee,
    client_trees,
    dpsgd_guarantees,
    sampling_guarantees,
)

DELTA = 1e-5
"""δ of DP-SGD, and the slack δ' of the composition theorem: below one over the number of edges of
every client of the papers.
"""


def measure(case: Case) -> Tables:
    """The guarantees of all clients.

    Returns:
        ``guarantees``: a row for each :class:`.client_guarantees.ClientGuarantee`: epsilon, delta
        and log10_rest (log₁₀ (1 − δ)), with ``_one`` of a single sampling or step, None without an
        ε.  ``settings``: a row.
    """
    setting, rows = case.task.setting, []
    noises = (
        {case.run.method.label: case.parameters.sigma} if hasattr(case.parameters, "sigma") else {}
    )
    for found in client_guarantees(case.task, noises):
        facts = {name: value for name, value in vars(found).items() if name not in ("one", "all")}
        rows.append({**facts, **_columns(found.one, "_one"), **_columns(found.all, "")})
    trained = {
        "fanout": setting.fanout,
        "layers": setting.layers,
        "epochs": setting.rounds * setting.local_epochs,
    }
    return {"guarantees": rows, "settings": [{**trained, "batch_size": setting.batch_size}]}


def _columns(guarantee: Guarantee | None, suffix: str) -> dict[str, Any]:
    found = (
        (None,) * 3
        if guarantee is None
        else (guarantee.epsilon, guarantee.delta, guarantee.log_rest / math.log(10))
    )
    return {
        f"{name}{suffix}": value
        for name, value in zip(("epsilon", "delta", "log10_rest"), found, strict=True)
    }


def client_guarantees(task: Task, noises: Mapping[str, float]) -> Iterator[ClientGuarantee]:
    """All guarantees of each client: of neighbour sampling, and of DP-SGD with the noise σ of each
    method.
    """
    setting, place = task.setting, (task.graph, task.partition)
    epochs = setting.rounds * setting.local_epochs
    yield from sampling_guarantees(
        *place, SamplingParameters(setting.fanout, setting.layers, epochs, slack=DELTA)
    )
    if noises:
        trees = client_trees(*place, task.split, setting.layers, setting.fanout)
        yield from dpsgd_guarantees(trees, setting.batch_size, epochs, noises, DELTA)
