"""What has to be made before a run's classifier is trained: the run's steps as files of the DAG.

Runs that agree on all that a step depends on share its file: it is named by those parameters alone.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feddep import frameworks, plan
from feddep.config import Config
from feddep.provenance import code_fingerprint
from feddep.steps import Step


@dataclass(frozen=True)
class Preparation:
    """A step of a run.

    Attributes:
        run: a run that needs it.
        step: the step.
        specification: everything that determines it but data and code.
        file: where its tensors lie below the output; what crossed borders, and the time it took, lie beside it as JSON.
        needs: stages and files of the steps whose results it reads.
    """

    run: plan.Run
    step: Step
    specification: dict[str, Any]
    file: Path
    needs: dict[str, Path]


def preparations(config: Config, run: plan.Run) -> list[Preparation]:
    """The steps of a run, in the order in which they are made; none for a framework that has none."""
    specification = plan.specification(config, run)
    _, parameters = frameworks.configured(specification["framework"])
    common = {part: specification[part] for part in ("dataset", "split", "partition", "setting", "seed")}
    done: dict[str, Preparation] = {}
    for step in frameworks.steps(specification["framework"]):
        uses = {name: getattr(parameters, name) for name in step.uses}
        needed = {stage: done[stage].specification["step"] for stage in step.needs}
        of_step = {"make": f"{step.make.__module__}.{step.make.__qualname__}", "parameters": uses, "needs": needed}
        folder = Path(step.stage, run.setting, run.dataset, run.scope, plan.digest(of_step)[:12])
        done[step.stage] = Preparation(
            run,
            step,
            {**common, "step": of_step},
            folder / f"seed{run.seed}.safetensors",
            {stage: done[stage].file for stage in step.needs},
        )
    return list(done.values())


def key(config: Config, preparation: Preparation) -> str:
    """The content key of a step's result."""
    return plan.digest(
        {
            "specification": preparation.specification,
            "data": plan.data_fingerprint(config, preparation.run.dataset),
            "code": code_fingerprint(preparation.step.make.__module__, "feddep.splits", "feddep.features", "feddep.partition"),
        }
    )
