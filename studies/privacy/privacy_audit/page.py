"""The page: claimed guarantees beside the results of the attacks, and a figure of what prototypes
tell of features.
"""

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import drawing
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import dataset_title, method_title
from studies import measuring
from studies.privacy.privacy_audit.attack_statistics import ThresholdTest, evaluate_test
from studies.privacy.privacy_audit.canaries import DELTA
from studies.privacy.privacy_audit.one_run import SIMULATIONS
from studies.privacy.privacy_audit.reconstruction import KNOWLEDGE, summary

Rows = list[dict[str, Any]]
_RUN = ["setting", "dataset", "clients", "seed"]


def page(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The tables of all parts, the text and the figure; the runs must be of FedDEP and FedDEP w/o
    NFDP, too.
    """
    run = tables["membership"].iloc[0]
    membership = in_paper_order(tables["membership"], ["method"]).drop(columns=_RUN)
    canaries, reconstruction = (
        tables[part].drop(columns=[*_RUN, "method"]) for part in ("canaries", "reconstruction")
    )
    properties = tables["properties"][
        ["property", "leaves", "clients", "auc", "auc_low", "auc_high", "model"]
    ]
    scores, in_one = summary(records(reconstruction)), canaries["canaries"].notna()
    text = measuring.text(
        "privacy_audit",
        title=f"{dataset_title(run['dataset'])}, M = {run['clients']}, setting "
        f"{run['setting']}, seed {run['seed']}",
        delta=DELTA,
        simulations=SIMULATIONS,
        membership=_membership(records(membership)),
        canaries=_canaries(records(canaries[~in_one])),
        one_run=_one_run(records(canaries[in_one])),
        properties=_properties(records(properties)),
        reconstruction=_reconstruction(scores),
    )
    further = {
        "canaries.csv": canaries,
        "properties.csv": properties,
        "reconstruction.csv": reconstruction,
    }
    return {"table.csv": membership, **further, "page.md": text, "figure": figure(scores)}


def _interval(row: dict[str, Any], name: str, sign: str = "") -> str:
    value, low, high = (f"{row[name + end]:{sign}.3f}" for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"


def _membership(found: Rows) -> str:
    header = [
        "method",
        "what leaves",
        "promise",
        "AUC without",
        "AUC with",
        "gain",
        "TPR without",
        "TPR with",
        "also",
    ]
    lines, last = [], None
    for row in found:
        name, last = method_title(row["method"]) if row["method"] != last else "", row["method"]
        also = [row["remark"]] if row["remark"] else []
        if 0 < row["coverage"] < 1 and row["covered_auc"] is not None:
            also.append(
                f"of {100 * row['coverage']:.0f} % of the pairs: AUC "
                f"{row['covered_baseline_auc']:.3f} without, "
                f"{row['covered_auc']:.3f} with"
            )
        with_messages = [
            _interval(row, "auc"),
            _interval(row, "gain_auc", "+"),
            _interval(row, "tpr"),
        ]
        auc, gain, tpr = ["", "", ""] if row["leaves"] == "nothing" else with_messages
        before = [f"{row[f'baseline_{score}']:.3f}" for score in ("auc", "tpr")]
        lines.append(
            [
                name,
                row["leaves"],
                row["promise"],
                before[0],
                auc,
                gain,
                before[1],
                tpr,
                "; ".join(also),
            ]
        )
    return md.table(header, lines)


def _promise(row: dict[str, Any]) -> str:
    delta = row["promised_delta"]
    written = f"{delta:.3f}" if 1e-3 <= delta <= 1 - 5e-4 else f"{delta:.3g}"
    return f"ε = {row['promised_epsilon']:.3g}, δ = {written} ({row['promise']})"


def _canaries(found: Rows) -> str:
    header = [
        "what leaves",
        "neighbours",
        "runs judged",
        "promise",
        "TPR",
        "FPR",
        "ε ≥",
        "δ ≥",
        "most that could be shown",
    ]
    lines = []
    for row in found:
        trials = int(row["trials"])
        # the bound that a test without any error would show
        most = evaluate_test(
            ThresholdTest(0.5, True, True), np.ones(trials), np.zeros(trials), row["delta"]
        )["low"]
        shares = [f"{row[name]:.4g}" for name in ("likely", "unlikely")]
        bounds = [f"{row['low']:.2f}", f"{row['least_delta']:.3f}", f"ε ≥ {most:.2f}"]
        lines.append(
            [row["releases"], f"{row['degree']:.0f}", str(trials), _promise(row), *shares, *bounds]
        )
    return md.table(header, lines)


def _one_run(found: Rows) -> str:
    header = [
        "σ",
        "trainings",
        "steps",
        "canaries",
        "promise",
        "guessed right",
        "ε ≥",
        "attainable",
        "most",
    ]
    lines = []
    for row in found:
        counts = [f"{row[name]:.0f}" for name in ("runs", "steps", "canaries")]
        bounds = [f"{row[name]:.2f}" for name in ("low", "attainable", "most")]
        lines.append(
            [
                f"{row['sigma']:g}",
                *counts,
                _promise(row),
                f"{row['correct']:.0f} of {row['guesses']:.0f}",
                *bounds,
            ]
        )
    return md.table(header, lines)


def _properties(found: Rows) -> str:
    leaves = list(dict.fromkeys(row["leaves"] for row in found))
    cells = {(row["property"], row["leaves"]): _interval(row, "auc") for row in found}
    names = dict.fromkeys(name for name, _ in cells)
    return md.table(
        ["AUC", *leaves], [[name, *(cells[name, each] for each in leaves)] for name in names]
    )


def _reconstruction(scores: Rows) -> str:
    header = [
        "C",
        "chance",
        *(f"{what}, {knowledge}" for knowledge in KNOWLEDGE for what in ("error", "match")),
    ]
    lines = []
    for count in dict.fromkeys(row["prototypes"] for row in scores):
        rows = [row for row in scores if row["prototypes"] == count]
        cells = [f"{row[what]:.3f}" for row in rows for what in ("error", "match")]
        lines.append(
            ["every node" if count is None else str(count), f"{rows[0]['chance']:.3f}", *cells]
        )
    return md.table(header, lines)


_LOOKS: dict[str, dict[str, Any]] = {
    knowledge: {"color": colour, "marker": marker, "linewidth": 1.0}
    for knowledge, colour, marker in zip(
        KNOWLEDGE, ("#0072B2", "#D55E00", "#009E73"), "osD", strict=True
    )
}
"""Of the line of each adversary's knowledge."""


def figure(scores: Rows) -> Figure:
    """Error and matches over the number of prototypes, a line per adversary's knowledge; bars span
    the clients.
    """
    counts = list(dict.fromkeys(row["prototypes"] for row in scores))
    with drawing.style():
        result, axes = drawing.panels(1, 2, 2.1)
        for ax, score, label in zip(
            axes[0],
            ("error", "match"),
            (
                "error of what is read off a prototype, guessing is 1",
                "share of prototypes that lead to a node",
            ),
            strict=True,
        ):
            for k, (knowledge, look) in enumerate(_LOOKS.items()):
                rows = [row for row in scores if row["knowledge"] == knowledge]
                places = [counts.index(row["prototypes"]) + 0.12 * (k - 1) for row in rows]
                ends = ([row[f"{score}_{end}"] for row in rows] for end in ("low", "high"))
                ax.vlines(places, *ends, color=look["color"])
                ax.plot(places, [row[score] for row in rows], markersize=3.5, **look)
            ax.set_xticks(
                range(len(counts)), ["n" if count is None else str(count) for count in counts]
            )
            ax.set_title(fill(label, 30), loc="left")
        best = max(scores, key=lambda row: row["match"] - row["chance"])
        guess = {"color": drawing.INK, "linewidth": 0.8, "linestyle": "--"}
        axes[0, 0].axhline(1.0, **guess)
        axes[0, 0].set_ylim(bottom=0)
        chance = [row["chance"] for row in scores if row["knowledge"] == KNOWLEDGE[0]]
        axes[0, 1].plot(range(len(counts)), chance, **guess)
        axes[0, 1].set_ylim(0, 1.02)
        handles = [drawing.sample(name, **look) for name, look in _LOOKS.items()]
        drawing.head(
            result,
            f"With {best['knowledge']} {best['match']:.0%} of {best['prototypes']} prototypes "
            f"lead to one of their nodes; guesses lead there in {best['chance']:.0%}\n"
            "What prototypes tell of single nodes",
            [*handles, drawing.sample("guessing", **guess)],
            below="number C of prototypes",
        )
    return result
