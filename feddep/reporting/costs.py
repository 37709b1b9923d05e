"""What each row costs: bytes between clients and server, seconds of every stage; and what it assumes."""

import math

import pandas as pd

from feddep.methods import registry
from feddep.reporting import markdown as md
from feddep.reporting.frames import CELL, in_paper_order, records
from feddep.reporting.labels import method_title
from feddep.reporting.runs import FinishedRun

STAGES = ("pretrain", "prototypes", "generator")
"""The stages that a method may have before its classifier is trained."""

_OF_TRAINING = ("model", "training", "validation")
"""Kinds of messages that every federated method sends: the classifier's weights, and what clients report of it."""

_NOTES = """\
Means over seeds. *MB*: all that crossed a client's border in either direction, 10⁶ bytes; *beside the classifier*: what of it are
neither the classifier's weights nor the losses and numbers of correct answers that clients report. *s*: seconds on one core of
training the classifier, all clients in turn, and of each stage before; stages whose results are shared by several rows count for
each. Times are those of the machine in `provenance.json`, with whatever else it did: take them for orders of magnitude.
*assumes*: what the method needs or gives away beyond FedAvg (docs/methods.md).
"""


def summarise(finished: list[FinishedRun]) -> pd.DataFrame:
    """One row a setting, dataset, method and number of clients, in the papers' order; means over seeds.

    Returns:
        setting, dataset, clients, method, seeds; assumes, joined by semicolons; bytes, and bytes_beside, of messages other
        than the classifier's; seconds of training the classifier, and for each of :data:`STAGES` such as seconds_generator,
        NaN where a method has no such stage.
    """
    rows = pd.DataFrame([_row(one) for one in finished]).astype({"clients": "Int64"})
    groups = rows.groupby([*CELL, "assumes"], sort=False, dropna=False)
    summary = groups.mean().drop(columns="seed").assign(seeds=groups.size()).reset_index()
    summary[["bytes", "bytes_beside"]] = summary[["bytes", "bytes_beside"]].round().astype("int64")
    columns = ["setting", "dataset", "clients", "method", "seeds", "assumes", "bytes", "bytes_beside", "seconds"]
    columns += [f"seconds_{stage}" for stage in STAGES]
    return in_paper_order(summary)[columns]


def _row(one: FinishedRun) -> dict[str, object]:
    before = one.provenance.get("seconds_before", {})
    communication = one.result["communication"]
    return {
        **one.identity,
        "assumes": "; ".join(registry.find(one.run.method).assumes),
        "bytes": sum(entry["bytes"] for entry in communication),
        "bytes_beside": sum(entry["bytes"] for entry in communication if entry["kind"] not in _OF_TRAINING),
        "seconds": float(one.provenance.get("seconds", math.nan)),
        **{f"seconds_{stage}": float(before.get(stage, math.nan)) for stage in STAGES},
    }


def markdown(summary: pd.DataFrame) -> str:
    """A page with a table a setting and dataset."""
    return f"# What the rows cost\n\n{_NOTES}\n{md.sections(summary, _block)}"


def _block(rows: pd.DataFrame) -> str:
    header = ["", "M", "MB", "beside the classifier", "classifier, s", *(f"{stage}, s" for stage in STAGES), "assumes"]
    lines = []
    for line in records(rows):
        sizes = [f"{line[name] / 1e6:.3g}" for name in ("bytes", "bytes_beside")]
        times = [md.number(line[name], ".1f") for name in ("seconds", *(f"seconds_{stage}" for stage in STAGES))]
        lines.append([method_title(line["method"]), md.number(line["clients"], "d"), *sizes, *times, line["assumes"]])
    return md.table(header, lines)
