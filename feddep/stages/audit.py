"""Stage ``audit``: what those who receive clients' messages find out about them, by attacking."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from feddep.stages._running import Job

HELP = "attack what leaves clients: edges, properties, features, and lower bounds on ε"

PARTS = ("membership", "properties", "canaries", "reconstruction", "report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    from feddep.stages import _running

    _running.add_arguments(parser)
    parser.add_argument(
        "--part",
        required=True,
        choices=PARTS,
        help="what to do: find the edges of clients of the framework; infer properties of clients; bound ε from below; "
        "reconstruct features from prototypes; or put it all together",
    )
    parser.add_argument(
        "--repetitions",
        type=int,
        metavar="R",
        help="canaries: runs with, and without, each edge (default: of each canary its own)",
    )
    parser.add_argument(
        "--findings",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="report: what another part has written; repeatable",
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="table to write, CSV, its provenance beside it; report: a folder",
    )


def main(arguments: argparse.Namespace) -> None:
    """Do one part, and write its table.

    Raises:
        AuditError: if there is nothing to attack, or too little.
    """
    import time

    from feddep.audit import AuditError
    from feddep.stages import _running

    job = _running.read(arguments)
    if job.problem.partition is None:
        raise AuditError("an audit is of clients; give their number with --clients, and the partition with --partition")
    if arguments.part == "report":
        _report(job, arguments.findings, arguments.output)
        return
    started = time.perf_counter()
    rows = _measure(job, arguments.part, arguments.repetitions)
    _write(job, rows, arguments.output, time.perf_counter() - started)


def _measure(job: "Job", part: str, repetitions: int | None) -> list[dict[str, Any]]:
    """Rows of the table of one part."""
    from feddep import frameworks, variants

    _, parameters = frameworks.configured(job.specification["framework"])
    if part == "membership":
        from feddep.audit import membership

        name = variants.base(job.run.framework)
        lines = membership.measure(name, job.problem, parameters)
        return [{"framework": name, "rounds": job.problem.setting.rounds, **line.as_dict()} for line in lines]
    if part == "properties":
        from feddep.audit import properties

        return properties.measure(job.problem, parameters)
    if part == "canaries":
        from feddep.audit import canaries

        return canaries.measure(job.problem, parameters, repetitions)
    from feddep.audit import reconstruction

    return reconstruction.measure(job.problem, parameters)


def _write(job: "Job", rows: list[dict[str, Any]], output: Path, seconds: float) -> None:
    """Write the table and its provenance."""
    import pandas as pd

    from feddep.csv_files import write_csv
    from feddep.storage import write_json

    write_csv(output, pd.DataFrame(rows))
    facts = {"run": job.run.path, "specification": job.specification, "provenance": job.provenance(seconds)}
    write_json(output.with_suffix(".json"), facts)


def _report(job: "Job", findings: list[Path], output: Path) -> None:
    """Put the parts together; the run says which noise the promises of DP-SGD are of."""
    import dataclasses

    from feddep import plan
    from feddep.audit import report
    from feddep.reporting.labels import dataset_title

    run, noises = job.run, {}
    for name in ("fedgnn", "feddep_wo_nfdp"):
        options = plan.specification(job.config, dataclasses.replace(run, framework=name))["framework"]
        noises[name] = _sigma(options)
    title = f"{dataset_title(run.dataset)}, M = {run.clients}, setting {run.setting}, seed {run.seed}"
    report.write(job.problem, noises, findings, title, output)


def _sigma(options: dict[str, Any]) -> float:
    from feddep import frameworks

    return float(frameworks.configured(options)[1].sigma)
