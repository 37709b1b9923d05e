"""The table, guarantee above and attack below, and the figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.audit import AuditError, reconstruction
from feddep.audit.bounds import Tell, judge
from feddep.audit.promises import Promises
from feddep.csv_files import write_csv
from feddep.problem import Problem
from feddep.reporting import drawing, figures
from feddep.reporting.frames import records
from feddep.reporting.labels import framework_title, sort_frameworks
from feddep.reporting.markdown import table
from feddep.storage import read_json, write_json, write_text

_NOTES = """\
An attacker who receives what leaves a client, and knows all of the client but its edges: nodes, features, labels, which nodes are
trained on, and how training works. Each client is attacked by a model that was trained on the others, whose edges the attacker
knows. Half of the pairs are edges; the others have the same first nodes, and second nodes of the same classes and degrees.

- *without*: the same attack without any message: what features and classes give away by themselves.
- *with*: the attack with the messages; in brackets the 95 % bootstrap interval over pairs. *gain*: the difference.
- *TPR*: share of the edges that are found where 1 % of the other pairs are taken for edges; 0.01 is guessing.
- *promise*: (ε, δ) of edge-local differential privacy for the classifier's training, or for what else leaves.
"""
_CANARIES = """\
Runs with and without one edge, all else being known (`feddep/audit/canaries.py`). *ε ≥*: lower bound at δ = {delta:g}, with 95 %
confidence by Clopper and Pearson; its height is limited by the number of runs, as the last column says. *δ ≥*: likewise, at
ε = 0. *neighbours*: of the node that gets the edge, without it.
"""
_PROPERTIES = """\
Whether a property of a client is above the median, inferred from one message by a model that was trained on clients of other
nodes; 0.5 is guessing.
"""
_RECONSTRUCTION = """\
Mean features of a cluster, reconstructed from its prototype by a linear map that was learned on other clients; means over the
clients. *error*: squared error as a share of that of guessing the mean of all nodes; 1 is guessing. *match*: share of the
prototypes for which the node most like the reconstruction is a member of the cluster; *chance*: the same for a random node.
"""


def write(problem: Problem, noises: dict[str, float], files: Sequence[Path], title: str, output: Path) -> None:
    """Write tables/audit.md and .csv, the other parts' tables, their provenance, and figures/reconstruction.

    Args:
        problem: the run that was audited.
        noises: σ of each framework that trains by DP-SGD.
        files: the tables of all parts, CSV, their provenance beside them; a part is told by its columns.
        title: what was audited.
        output: folder of the tables' and the figures' folders.

    Raises:
        AuditError: if a part is missing.
    """
    parts: dict[str, list[pd.DataFrame]] = {"membership": [], "canaries": [], "properties": [], "reconstruction": []}
    provenance = {}
    for file in files:
        found = pd.read_csv(file, keep_default_na=False, na_values=[""])
        part = _part_of(found, file)
        parts[part].append(found)
        provenance[f"{part}/{file.stem}"] = read_json(file.with_suffix(".json"))
    for name, frames in parts.items():
        if not frames:
            raise AuditError(f"none of the findings is of the part {name}; run the stage audit with --part {name}")
    promises = Promises(problem, noises)
    membership = pd.concat(parts["membership"], ignore_index=True)
    membership["promise"] = [promises.of(row["framework"], row["leaves"]) for row in records(membership)]
    membership = membership.set_index("framework").loc[sort_frameworks(membership["framework"])].reset_index()
    others = {name: frames[0] for name, frames in parts.items() if name != "membership"}
    tables = output / "tables"
    for name, frame in {"audit": membership, **{f"audit_{name}": frame for name, frame in others.items()}}.items():
        write_csv(tables / f"{name}.csv", frame)
    summary = reconstruction.summary(records(others["reconstruction"]))
    text = [
        f"# What leaves a client, attacked\n\n{title}\n\n{_NOTES}\n{_membership(membership)}",
        f"## Lower bounds on ε\n\n{_CANARIES.format(delta=others['canaries']['delta'][0])}\n{_canaries(others['canaries'])}",
        f"## Properties of clients\n\n{_PROPERTIES}\n{_properties(others['properties'])}",
        f"## Features from prototypes\n\n{_RECONSTRUCTION}\n{_reconstruction(summary)}",
    ]
    write_text(tables / "audit.md", "\n".join(text))
    write_json(tables / "audit.json", provenance)
    figures.write(figure(summary), output / "figures", "reconstruction")


def _part_of(found: pd.DataFrame, file: Path) -> str:
    for name, column in {
        "membership": "gain_auc",
        "canaries": "least_delta",
        "properties": "property",
        "reconstruction": "knowledge",
    }.items():
        if column in found:
            return name
    raise AuditError(f"{file} is no table of this audit: it has the columns {', '.join(map(str, found.columns))}")


def _interval(row: dict[str, Any], name: str, sign: str = "") -> str:
    value, low, high = (f"{row[name + end]:{sign}.3f}" for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"


def _membership(found: pd.DataFrame) -> str:
    header = ["framework", "what leaves", "promise", "AUC without", "AUC with", "gain", "TPR without", "TPR with", "also"]
    lines, last = [], None
    for row in records(found):
        name = framework_title(row["framework"]) if row["framework"] != last else ""
        last = row["framework"]
        silent = row["leaves"] == "nothing"
        what, remark = row["leaves"], row["remark"] or ""
        if 0 < row["coverage"] < 1 and row["covered_auc"] is not None:
            remark += f"; of {100 * row['coverage']:.0f} % of the pairs: AUC {row['covered_baseline_auc']:.3f} without, "
            remark = remark.removeprefix("; ") + f"{row['covered_auc']:.3f} with"
        attack = ["", ""] if silent else [_interval(row, "auc"), _interval(row, "gain_auc", "+")]
        tpr = "" if silent else _interval(row, "tpr")
        before = [f"{row['baseline_auc']:.3f}", f"{row['baseline_tpr']:.3f}"]
        lines.append([name, what, row["promise"], before[0], *attack, before[1], tpr, remark])
    return table(header, lines)


def _canaries(found: pd.DataFrame) -> str:
    header = ["what leaves", "neighbours", "runs judged", "promise", "TPR", "FPR", "ε ≥", "δ ≥", "most that could be shown"]
    lines = []
    for row in records(found):
        most = _most(int(row["trials"]), row["delta"])
        promised = f"ε = {row['promised_epsilon']:.3g}, δ = {_delta(row['promised_delta'])} ({row['promise']})"
        shares = [f"{row[name]:.4g}" for name in ("likely", "unlikely")]
        bounds = [f"{row['low']:.2f}", f"{row['least_delta']:.3f}", f"ε ≥ {most:.2f}"]
        lines.append([row["releases"], str(row["degree"]), str(row["trials"]), promised, *shares, *bounds])
    return table(header, lines)


def _most(trials: int, delta: float) -> float:
    """The lower bound that a test without any error would give."""
    return judge(Tell(0.5, True, True), np.ones(trials), np.zeros(trials), delta, 0.95).low


def _delta(value: float) -> str:
    return f"{value:.3f}" if 1e-3 <= value <= 1 - 5e-4 else f"{value:.3g}"


def _properties(found: pd.DataFrame) -> str:
    leaves = list(dict.fromkeys(found["leaves"]))
    lines = []
    for name in dict.fromkeys(found["property"]):
        rows = {row["leaves"]: row for row in records(found[found["property"] == name])}
        lines.append([name, *(_interval(rows[each], "auc") for each in leaves)])
    return table(["AUC", *leaves], lines)


def _reconstruction(summary: Sequence[dict[str, Any]]) -> str:
    header = ["C", "chance", *(f"{what}, {knowledge}" for knowledge in reconstruction.KNOWLEDGE for what in ("error", "match"))]
    counts = list(dict.fromkeys(row["prototypes"] for row in summary))
    lines = []
    for count in counts:
        rows = [row for row in summary if row["prototypes"] == count]
        cells = [f"{row[what]:.3f}" for row in rows for what in ("error", "match")]
        lines.append(["every node" if count is None else str(count), f"{rows[0]['chance']:.3f}", *cells])
    return table(header, lines)


_LOOKS = {
    reconstruction.KNOWLEDGE[0]: ("#0072B2", "o"),
    reconstruction.KNOWLEDGE[1]: ("#D55E00", "s"),
    reconstruction.KNOWLEDGE[2]: ("#009E73", "D"),
}
"""Colour and marker of each attack's knowledge."""


def figure(summary: Sequence[dict[str, Any]]) -> Figure:
    """Error and matches over the number of prototypes, a line an attack's knowledge; bars reach from client to client."""
    counts = list(dict.fromkeys(row["prototypes"] for row in summary))
    with drawing.style():
        result, axes = drawing.panels(1, 2, (7.0, 2.9))
        for ax, measure, label in zip(axes[0], ("error", "match"), ("error, as a share of guessing's", "match"), strict=True):
            for k, (knowledge, (colour, marker)) in enumerate(_LOOKS.items()):
                rows = [row for row in summary if row["knowledge"] == knowledge]
                places = [counts.index(row["prototypes"]) + 0.12 * (k - 1) for row in rows]
                ax.vlines(places, [row[f"{measure}_low"] for row in rows], [row[f"{measure}_high"] for row in rows], color=colour)
                ax.plot(places, [row[measure] for row in rows], color=colour, marker=marker, markersize=3.5, linewidth=1.0)
            ax.set_xticks(range(len(counts)), ["n" if count is None else str(count) for count in counts])
            ax.set_xlabel("number C of prototypes")
            ax.set_title(label, loc="left")
        axes[0, 0].axhline(1.0, color=drawing.INK, linewidth=0.8, linestyle="--")
        axes[0, 0].set_ylim(bottom=0)
        chance = [row for row in summary if row["knowledge"] == reconstruction.KNOWLEDGE[0]]
        places = [counts.index(row["prototypes"]) for row in chance]
        axes[0, 1].plot(places, [row["chance"] for row in chance], color=drawing.INK, linewidth=0.8, linestyle="--")
        axes[0, 1].set_ylim(0, 1.02)
        handles = [drawing.sample(name, color=colour, marker=marker, linewidth=1.0) for name, (colour, marker) in _LOOKS.items()]
        handles.append(drawing.sample("guessing", color=drawing.INK, linestyle="--", linewidth=0.8))
        result.legend(handles=handles, loc="outside lower center", ncols=4)
    return result
