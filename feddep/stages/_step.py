"""What the stages ``pretrain``, ``prototypes`` and ``generator`` do: make one step of a run."""

import argparse
import time
from pathlib import Path

from feddep import frameworks, preparations
from feddep.errors import ConfigError
from feddep.stages import _running
from feddep.storage import write_arrays, write_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    _running.add_arguments(parser)
    parser.add_argument(
        "--output", type=Path, required=True, metavar="FILE", help="tensors to write, safetensors; facts go beside it as JSON"
    )


def main(stage: str, arguments: argparse.Namespace) -> None:
    """Make the step of this stage, then write its tensors and, beside them, its key, ledger and provenance."""
    job = _running.read(arguments)
    prepared = next((each for each in preparations.preparations(job.config, job.run) if each.step.stage == stage), None)
    if prepared is None:
        raise ConfigError(f"the framework {job.run.framework} has no stage {stage}")
    key = preparations.key(job.config, prepared)  # of the code that runs, even if a file changes meanwhile
    _, parameters = frameworks.configured(job.specification["framework"])
    start = time.perf_counter()
    made = prepared.step.make(job.problem, parameters, job.problem.made)
    seconds = time.perf_counter() - start

    write_arrays(arguments.output, {name: tensor.detach().cpu().numpy() for name, tensor in made.tensors.items()})
    facts = {"key": key, "specification": prepared.specification, "ledger": made.ledger}
    write_json(_running.facts_beside(arguments.output), {**facts, "provenance": job.provenance(seconds)})
