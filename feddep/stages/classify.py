"""Stage ``classify``: one run of one method, from a graph to accuracies, training curve and bytes sent."""

import argparse
import time
from pathlib import Path

from feddep.experiment import keys
from feddep.experiment.records import run_fingerprint
from feddep.methods import registry
from feddep.stages import flags
from feddep.stages import job as jobs
from feddep.training.summary import summary
from feddep.utils.storage import write_arrays, write_result

HELP = "train and test one method on one dataset"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    jobs.add_arguments(parser)
    parser.add_argument("--metrics", type=Path, required=True, metavar="FILE", help="results to write, JSON")
    parser.add_argument("--model", type=Path, required=True, metavar="FILE", help="weights to write, safetensors")


def main(arguments: argparse.Namespace) -> None:
    """Train, then write the results and the weights at the best round."""
    job = jobs.read(arguments)
    key, code = keys.run_key(job.config, job.run), run_fingerprint(job.config, job.run)
    flags.check_key(arguments, key)
    method, parameters = registry.configured(job.specification["method"])
    start = time.perf_counter()
    result = method.run(job.task, parameters)
    seconds = time.perf_counter() - start

    write_arrays(arguments.model, {name: tensor.numpy() for name, tensor in result.weights().items()}, key)
    history = [round(second, 2) for second in result.histories[-1].seconds]
    provenance = {**job.provenance(seconds, code), "seconds_before": job.seconds, "seconds_by_round": history}
    content = {"specification": job.specification, **summary(result)}
    write_result(arguments.metrics, {"key": key, "result": content, "provenance": provenance})
