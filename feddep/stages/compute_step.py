"""Stage ``step``: one step of a run, which is computed before its classifier is trained."""

import argparse
import time
from pathlib import Path

HELP = "compute one step of a run: pretrain, prototypes or generator"
COMMAND = "step"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    from feddep.stages import job

    job.add_arguments(parser)
    parser.add_argument("--stage", required=True, help="which step of the run: pretrain, prototypes or generator")
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FILE", help="tensors to write, safetensors; facts go beside it as JSON"
    )


def main(arguments: argparse.Namespace) -> None:
    """Compute the step, then write its tensors and, beside them, its key, communication and provenance.

    Raises:
        ConfigError: if the method has no such step.
    """
    from feddep.experiment.step_jobs import step_jobs
    from feddep.methods import registry
    from feddep.stages import flags
    from feddep.stages import job as jobs
    from feddep.utils.errors import ConfigError
    from feddep.utils.storage import write_arrays, write_result

    job = jobs.read(arguments)
    planned = {each.step.stage: each for each in step_jobs(job.config, job.run)}
    if arguments.stage not in planned:
        known = ", ".join(planned) or "none"
        raise ConfigError(f"--stage is {arguments.stage}; the method {job.run.method} has {known}")
    step = planned[arguments.stage]
    flags.check_key(arguments, step.key)
    _, parameters = registry.configured(job.specification["method"])
    start = time.perf_counter()
    result = step.step.run(job.task, parameters, job.task.step_results)
    seconds = time.perf_counter() - start

    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in result.tensors.items()}
    write_arrays(arguments.output, arrays, step.key)
    facts = {"key": step.key, "specification": step.specification, "communication": result.communication}
    write_result(jobs.facts_beside(arguments.output), {**facts, "provenance": job.provenance(seconds)})
