"""The steps of a run as files of the DAG.  Runs that agree on all that a step depends on share its
file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feddep.experiment import keys
from feddep.experiment.plan import Run
from feddep.methods.method import Step


@dataclass(frozen=True)
class StepJob:
    """A step of a run.

    Attributes:
        run: a run that needs it.
        step: the step.
        key: its content key.
        file: where its tensors lie below ``steps/``; what it sent and its seconds lie beside it as
            JSON.
    """

    run: Run
    step: Step
    key: str
    file: Path


def step_jobs(run: Run) -> list[StepJob]:
    """The steps of a run, in the order in which they are computed; none for a method that has
    none.
    """
    _, parameters, steps = run.method.configured
    specified: dict[str, Any] = {}
    jobs: list[StepJob] = []
    for step in steps:
        specified[step.stage] = keys.step_specification(
            run.specification, step, parameters, specified
        )
        key = keys.step_key(specified[step.stage], run.data)
        file = Path(step.stage, f"{run.dataset.name}-{key}.safetensors")
        jobs.append(StepJob(run, step, key, file))
    return jobs
