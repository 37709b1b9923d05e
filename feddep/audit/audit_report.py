"""The report of the audit: a table with the claimed guarantees beside the results of the attacks, and the figure."""

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.audit import AuditError
from feddep.audit.attack_statistics import ThresholdTest, evaluate_test
from feddep.audit.membership import PLACEBO
from feddep.audit.one_run import SIMULATIONS
from feddep.audit.reconstruction import KNOWLEDGE, summary
from feddep.privacy.accountant import Guarantee
from feddep.reporting import drawing
from feddep.reporting.client_guarantees import client_guarantees
from feddep.reporting.files import write as write_files
from feddep.reporting.frames import records
from feddep.reporting.labels import method_title, sort_methods
from feddep.reporting.markdown import table
from feddep.training.task import Task
from feddep.utils.checksum_lists import find_mismatch
from feddep.utils.errors import DataError
from feddep.utils.files import read_json

PARTS = {"membership": "gain_auc", "canaries": "least_delta", "properties": "property", "reconstruction": "knowledge"}
"""The parts of the audit, each with a column that only its table has."""

CLAIMS: Mapping[tuple[str, str], str] = {
    ("fedgsl", "noised embeddings of all nodes"): (
        "none stated: noise as long as the embedding, which is from full neighbour lists"
    ),
    ("fedsage_plus", "gradients returned to other clients"): "edges: all, (0, 0), as they are not read; features: none",
    ("feddep", "prototypes, encoder known"): "by FedDEP that of sampling; but embeddings are computed from full neighbour lists",
    ("feddep_wo_nfdp", "prototypes, encoder known"): "none: noise is on the classifier, embeddings from full neighbour lists",
    ("local", "nothing"): "all, (0, 0)",
    ("fedavg", PLACEBO): "a control: of the true edges these updates can tell nothing",
}
"""Claimed guarantees by method and what leaves; everything else but model updates has :data:`NO_CLAIM`."""

NO_CLAIM = "none: computed from full neighbour lists"

_NOTES = """\
An attacker who receives what leaves a client, and knows all of the client but its edges: nodes, features, labels, which nodes are
trained on, and how training works. Each client is attacked by a model that was trained on the others, whose edges the attacker
knows. Half of the pairs are edges; the others have the same first nodes, and second nodes of the same classes and degrees.

- *without*: the same attack without any message: what features and classes give away by themselves.
- *with*: the attack with the messages; in brackets the 95 % bootstrap interval over clients, which few clients leave rough.
  *gain*: the difference.
- *TPR*: share of the edges that are found where 1 % of the other pairs are taken for edges; 0.01 is guessing.
- *promise*: (ε, δ) of edge-local differential privacy for the classifier's training, or for what else leaves. What a method
  with noise feeds to the training depends on the same edges without noise, and its clipping norm was chosen on private validation
  nodes: it promises nothing for an edge. The ε of the noised training alone is read off the private graph: it is per instance.
- *the target's edges rewired*: a placebo. The attacked client alone trains on other edges, between nodes of the same classes; the
  attack is the one that was learned on true ones. It gains with true edges only if those are what it finds.
"""
_CANARIES = """\
Runs with and without one edge, all else being known (`feddep/audit/canaries.py`). *ε ≥*: lower bound at δ = {delta:g}, with 95 %
confidence by Clopper and Pearson; its height is limited by the number of runs, as the last column says. *δ ≥*: likewise, at
ε = 0. *neighbours*: of the node that gets the edge, without it. A bound of 0 says that this attack, in so many runs, shows
nothing; there is no control that says what it could have shown.
"""
_ONE_RUN = """\
DP-SGD, every step watched, with many inserted edges that are there or not by a coin each (`feddep/audit/one_run.py`). *ε ≥*:
lower bound at δ = {delta:g}, with 95 % confidence, by the number of coins guessed right (Steinke, Nasr and Jagielski 2023,
Theorem 5.2). *attainable*: what the same audit shows, in the mean of {simulations} simulations, of edges that attain the promise.
*most*: what it shows where every guess is right. The lines with less noise are the positive control.
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


class ClaimedGuarantees:
    """The edge-level guarantees claimed for one run's clients, for the training of the classifier over all rounds.

    Those of neighbour sampling are exact and hold whatever ε.  Of DP-SGD it is the accountant's, for the training from given
    inputs, per instance (docs/privacy.md).

    Args:
        task: the run; there is a partition.
        noises: σ of each method that trains by DP-SGD.
    """

    def __init__(self, task: Task, noises: Mapping[str, float]) -> None:
        assert task.partition is not None
        self._lines = list(client_guarantees(task.graph, task.partition, task.split, task.setting, noises))
        self._noises = noises

    def of(self, method: str, leaves: str) -> str:
        """In a few words."""
        if leaves != "model updates":
            return CLAIMS.get((method, leaves), NO_CLAIM)
        return self._of_noise(method) if method in self._noises else self._of_sampling()

    def _of_sampling(self) -> str:
        """For the node of median degree of each client."""
        wanted = ("sampling", "median node", "exact")
        lines = [line for line in self._lines if (line.mechanism, line.hidden, line.accounting) == wanted]
        once, ever = [line.one for line in lines], [line.all for line in lines]
        return f"sampling: δ = {_deltas(once)} once, {_deltas(ever)} in {lines[0].times} times, whatever ε"

    def _of_noise(self, method: str) -> str:
        """The least ε that an accounting gives for each client."""
        lines = [line for line in self._lines if (line.method, line.hidden) == (method, "edge")]
        least: dict[int | None, float] = {}
        for line in lines:
            least[line.client] = min(least.get(line.client, math.inf), line.all.epsilon if line.all else math.inf)
        delta = lines[0].all.delta if lines[0].all else math.nan
        alone = f"training alone, σ = {self._noises[method]:g}: ε = {_range(least.values())} for an edge, δ = {delta:.0e}"
        return f"none as a method; {alone}, per instance"


def _deltas(guarantees: list[Guarantee | None]) -> str:
    rest = [each.log_rest for each in guarantees if each is not None]
    low, high = (-math.expm1(value) for value in (max(rest), min(rest)))
    if low < 0.9999:
        return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} – {high:.2f}"
    exponent = max(rest) / math.log(10)
    return f"1 − 10^{exponent:.0f} or more" if math.isfinite(exponent) else "1"


def _range(values: Collection[float]) -> str:
    low, high = ("∞" if math.isinf(value) else f"{value:.{0 if value >= 100 else 1}f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} – {high}"


def write(task: Task, noises: Mapping[str, float], files: Sequence[Path], title: str, output: Path) -> None:
    """Write tables/audit.md and .csv, the other parts' tables, their provenance, and figures/reconstruction.

    Args:
        task: the run that was audited.
        noises: σ of each method that trains by DP-SGD.
        files: the tables of all parts, CSV, their provenance beside them.
        title: what was audited.
        output: folder of the tables' and the figures' folders.

    Raises:
        AuditError: if a part is missing, or a table is of no part.
        DataError: if a table or its provenance is not what was written.
    """
    found: dict[str, list[pd.DataFrame]] = {part: [] for part in PARTS}
    provenance = {}
    for file in files:
        part, frame = _read(file)
        found[part].append(frame)
        provenance[f"{part}/{file.stem}"] = read_json(file.with_suffix(".json"))
    for part, frames in found.items():
        if not frames:
            raise AuditError(f"none of the findings is of the part {part}; run the stage audit with --part {part}")
    claims = ClaimedGuarantees(task, noises)
    membership = pd.concat(found["membership"], ignore_index=True)
    membership["promise"] = [claims.of(row["method"], row["leaves"]) for row in records(membership)]
    membership = membership.set_index("method").loc[sort_methods(membership["method"])].reset_index()
    _, canaries, properties, reconstruction = (frames[0] for frames in found.values())
    scores, in_one = summary(records(reconstruction)), canaries["canaries"].notna()
    of_one_run = _ONE_RUN.format(delta=canaries["delta"][0], simulations=SIMULATIONS)
    text = [
        f"# What leaves a client, attacked\n\n{title}\n\n{_NOTES}\n{_membership(membership)}",
        f"## Lower bounds on ε\n\n{_CANARIES.format(delta=canaries['delta'][0])}\n{_canaries(canaries[~in_one])}",
        f"## Many canaries in one run\n\n{of_one_run}\n{_one_run(canaries[in_one])}",
        f"## Properties of clients\n\n{_PROPERTIES}\n{_properties(properties)}",
        f"## Features from prototypes\n\n{_RECONSTRUCTION}\n{_reconstruction(scores)}",
    ]
    contents = {
        "tables/audit.csv": membership,
        "tables/audit_canaries.csv": canaries,
        "tables/audit_properties.csv": properties,
        "tables/audit_reconstruction.csv": reconstruction,
        "tables/audit.md": "\n".join(text),
        "tables/audit.json": provenance,
        "figures/reconstruction": figure(scores),
    }
    write_files(output, contents, "tables/audit")


def _read(file: Path) -> tuple[str, pd.DataFrame]:
    """A table of findings, and the part that it is of."""
    if problem := find_mismatch(file.with_suffix(".sha256")):
        raise DataError(f"{problem}; run the stage audit again")
    try:
        frame = pd.read_csv(file, keep_default_na=False, na_values=[""])
    except ValueError as error:  # of pandas: no column, lines of different lengths, no UTF-8
        raise AuditError(f"{file} is no table: {' '.join(str(error).split())}; run the stage audit again") from None
    part = next((part for part, column in PARTS.items() if column in frame), None)
    if part is None:
        raise AuditError(f"{file} is no table of this audit: it has the columns {', '.join(map(str, frame.columns))}")
    return part, frame


def _interval(row: dict[str, Any], name: str, sign: str = "") -> str:
    value, low, high = (f"{row[name + end]:{sign}.3f}" for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"


def _membership(found: pd.DataFrame) -> str:
    header = ["method", "what leaves", "promise", "AUC without", "AUC with", "gain", "TPR without", "TPR with", "also"]
    lines, last = [], None
    for row in records(found):
        name = method_title(row["method"]) if row["method"] != last else ""
        last = row["method"]
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
        trials, degree = (int(row[name]) for name in ("trials", "degree"))
        # the bound that a test without any error would show
        most = evaluate_test(ThresholdTest(0.5, True, True), np.ones(trials), np.zeros(trials), row["delta"])["low"]
        promised = f"ε = {row['promised_epsilon']:.3g}, δ = {_delta(row['promised_delta'])} ({row['promise']})"
        shares = [f"{row[name]:.4g}" for name in ("likely", "unlikely")]
        bounds = [f"{row['low']:.2f}", f"{row['least_delta']:.3f}", f"ε ≥ {most:.2f}"]
        lines.append([row["releases"], str(degree), str(trials), promised, *shares, *bounds])
    return table(header, lines)


def _one_run(found: pd.DataFrame) -> str:
    header = ["σ", "trainings", "steps", "canaries", "promise", "guessed right", "ε ≥", "attainable", "most"]
    lines = []
    for row in records(found):
        counts = [f"{row[name]:.0f}" for name in ("runs", "steps", "canaries")]
        promised = f"ε = {row['promised_epsilon']:.3g}, δ = {_delta(row['promised_delta'])} ({row['promise']})"
        guessed = f"{row['correct']:.0f} of {row['guesses']:.0f}"
        bounds = [f"{row[name]:.2f}" for name in ("low", "attainable", "most")]
        lines.append([f"{row['sigma']:g}", *counts, promised, guessed, *bounds])
    return table(header, lines)


def _delta(value: float) -> str:
    return f"{value:.3f}" if 1e-3 <= value <= 1 - 5e-4 else f"{value:.3g}"


def _properties(found: pd.DataFrame) -> str:
    leaves = list(dict.fromkeys(found["leaves"]))
    lines = []
    for name in dict.fromkeys(found["property"]):
        rows = {row["leaves"]: row for row in records(found[found["property"] == name])}
        lines.append([name, *(_interval(rows[each], "auc") for each in leaves)])
    return table(["AUC", *leaves], lines)


def _reconstruction(scores: Sequence[dict[str, Any]]) -> str:
    header = ["C", "chance", *(f"{what}, {knowledge}" for knowledge in KNOWLEDGE for what in ("error", "match"))]
    counts = list(dict.fromkeys(row["prototypes"] for row in scores))
    lines = []
    for count in counts:
        rows = [row for row in scores if row["prototypes"] == count]
        cells = [f"{row[what]:.3f}" for row in rows for what in ("error", "match")]
        lines.append(["every node" if count is None else str(count), f"{rows[0]['chance']:.3f}", *cells])
    return table(header, lines)


_STYLES = dict(zip(KNOWLEDGE, (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "D")), strict=True))
"""Colour and marker of each adversary's knowledge."""


def figure(scores: Sequence[dict[str, Any]]) -> Figure:
    """Error and matches over the number of prototypes, a line per adversary's knowledge; bars span the clients."""
    counts = list(dict.fromkeys(row["prototypes"] for row in scores))
    with drawing.style():
        result, axes = drawing.panels(1, 2, (7.0, 2.9))
        for ax, score, label in zip(axes[0], ("error", "match"), ("error, as a share of guessing's", "match"), strict=True):
            for k, (knowledge, (colour, marker)) in enumerate(_STYLES.items()):
                rows = [row for row in scores if row["knowledge"] == knowledge]
                places = [counts.index(row["prototypes"]) + 0.12 * (k - 1) for row in rows]
                ax.vlines(places, [row[f"{score}_low"] for row in rows], [row[f"{score}_high"] for row in rows], color=colour)
                ax.plot(places, [row[score] for row in rows], color=colour, marker=marker, markersize=3.5, linewidth=1.0)
            ax.set_xticks(range(len(counts)), ["n" if count is None else str(count) for count in counts])
            ax.set_xlabel("number C of prototypes")
            ax.set_title(label, loc="left")
        axes[0, 0].axhline(1.0, color=drawing.INK, linewidth=0.8, linestyle="--")
        axes[0, 0].set_ylim(bottom=0)
        chance = [row for row in scores if row["knowledge"] == KNOWLEDGE[0]]
        places = [counts.index(row["prototypes"]) for row in chance]
        axes[0, 1].plot(places, [row["chance"] for row in chance], color=drawing.INK, linewidth=0.8, linestyle="--")
        axes[0, 1].set_ylim(0, 1.02)
        handles = [drawing.sample(name, color=colour, marker=marker, linewidth=1.0) for name, (colour, marker) in _STYLES.items()]
        handles.append(drawing.sample("guessing", color=drawing.INK, linestyle="--", linewidth=0.8))
        result.legend(handles=handles, loc="outside lower center", ncols=4)
    return result
