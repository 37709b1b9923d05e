"""The steps of a run as files of the DAG.  Runs that agree on all that a step depends on share its
file.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feddep.config import variants
from feddep.config.loading import Config
from feddep.experiment import keys
from feddep.experiment.plan import Run
from feddep.methods.method import Step


@dataclass(frozen=True)
class StepJob:
    """A step of a run.

    Attributes:
        run: a run that needs it.
        step: the step.
        specification: everything that determines it but the data.
        key: its content key.
        file: where its tensors lie below ``steps/``; what it sent and its seconds lie beside it as
            JSON.
        needs: stages and files of the steps whose results it reads.
    """

    run: Run
    step: Step
    specification: dict[str, Any]
    key: str
    file: Path
    needs: dict[str, Path]


def step_jobs(config: Config, run: Run) -> list[StepJob]:
    """The steps of a run, in the order in which they are computed; none for a method that has
    none.
    """
    _, _, steps = keys.configured(config, run.method, variants.base(run.dataset))
    done: dict[str, StepJob] = {}
    for step in steps:
        needs = {stage: done[stage] for stage in step.needs}
        specified = keys.step_specification(
            config, run, step, {stage: job.specification for stage, job in needs.items()}
        )
        key = keys.step_key(config, run, specified)
        file = Path(step.stage, f"{variants.base(run.dataset)}-{key}.safetensors")
        done[step.stage] = StepJob(
            run, step, specified, key, file, {stage: job.file for stage, job in needs.items()}
        )
    return list(done.values())
