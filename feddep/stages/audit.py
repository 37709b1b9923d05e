"""Stage ``audit``: attacks on what leaves clients."""

import argparse
import time
from pathlib import Path
from typing import Any

import pandas as pd

from feddep.audit import AuditError, audit_report, canaries, membership, properties, reconstruction
from feddep.config.loading import entry
from feddep.methods import registry
from feddep.reporting import files
from feddep.reporting.labels import dataset_title
from feddep.stages import flags
from feddep.stages import job as jobs

HELP = "attack what leaves clients: edges, properties, features, and lower bounds on ε"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    jobs.add_arguments(parser)
    parser.add_argument(
        "--part",
        required=True,
        choices=[*audit_report.PARTS, "report"],
        help="what to do: find the edges of clients of the method; bound ε from below; infer properties of clients; "
        "reconstruct features from prototypes; or write the report of all",
    )
    parser.add_argument(
        "--repetitions",
        type=flags.count,
        metavar="R",
        help="canaries: runs with, and without, each edge (default: of each its own)",
    )
    parser.add_argument(
        "--findings", type=Path, action="append", default=[], metavar="FILE", help="report: table of another part; repeatable"
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="table, CSV; provenance and checksums go beside it; report: a folder",
    )


def main(arguments: argparse.Namespace) -> None:
    """Compute one part and write its table and its provenance, or write the report.

    Raises:
        AuditError: if there is nothing to attack, or too little.
    """
    job, output = jobs.read(arguments), arguments.output
    if job.task.partition is None:
        raise AuditError("an audit is of clients; give their number with --clients, and the partition with --partition")
    if arguments.part == "report":
        run = job.run
        title = f"{dataset_title(run.dataset)}, M = {run.clients}, setting {run.setting}, seed {run.seed}"
        audit_report.write(job.task, _noises(job), arguments.findings, title, output)
        return
    start = time.perf_counter()
    rows = _measure(job, arguments.part, arguments.repetitions)
    seconds = time.perf_counter() - start
    facts = {"run": job.run.path, "specification": job.specification, "provenance": job.provenance(seconds)}
    files.write(output.parent, {output.name: pd.DataFrame(rows), f"{output.stem}.json": facts}, output.stem)


def _measure(job: jobs.Job, part: str, repetitions: int | None) -> list[dict[str, Any]]:
    """Rows of the table of one part."""
    method, parameters = registry.configured(job.specification["method"])
    if part == "membership":
        rows = membership.measure(method, job.task, parameters)
        return [{"method": method.name, "rounds": job.task.setting.rounds, **row} for row in rows]
    if part == "canaries":
        return canaries.measure(job.task, parameters, repetitions)
    return {"properties": properties, "reconstruction": reconstruction}[part].measure(job.task, parameters)


def _noises(job: jobs.Job) -> dict[str, float]:
    """σ of the methods that train by DP-SGD, in the configuration of the run."""
    return {name: entry(job.config, "methods", name, job.run.dataset)["sigma"] for name in ("fedgnn", "feddep_wo_nfdp")}
