"""The page: two tables a dataset, of nodes and of edges, a line a method; and a figure of both over
the budget.
"""

import math
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import norm

from feddep.config import variants
from feddep.reporting import drawing
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import changes_of, method_title, panel_title, places, without
from studies import measuring
from studies.vesper.vertical_attacks.vertical_canaries import CANARIES, DELTA, PROMISES

PLACE = ["setting", "dataset"]
ATTACKS = {
    "membership_auc": "node, shadow model",
    "entropy_auc": "node, entropy",
    "edge_auc": "edge, canaries",
}
"""The attacks by the column of their AUC."""
_MEASURED = (*ATTACKS, "accuracy_inside", "accuracy_outside", "low")
"""What is averaged over seeds."""
_PROMISES = tuple(f"promised_{name}" for name in PROMISES)


def page(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The table, the text and the figure."""
    summary = summarise(tables["vertical_attacks"])
    facts = {"canaries": CANARIES, "delta": DELTA, "promises": PROMISES}
    text = measuring.text("vertical_attacks", tables=md.sections(summary, _block), **facts)
    return {"table.csv": summary, "page.md": text, "figure": figure(summary)}


def summarise(measured: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, one row a setting, dataset and method.

    Returns:
        setting, dataset, method, budget (∞ without one), theta (0 without noise), seeds; mean and
        std of :data:`_MEASURED`, where low is the bound on ε; most, the largest that could have
        been found; promised_certified and promised_rdp, the mean, ∞ where nothing is promised;
        attainable, see :func:`attainable`.
    """
    missing = {"budget": math.inf, "theta": 0.0, **dict.fromkeys(_PROMISES, math.inf)}
    known = measured.assign(
        **{
            column: measured[column].astype(float).fillna(value)
            for column, value in missing.items()
        }
    )
    groups = known.groupby([*PLACE, "method"], sort=False)
    averaged = {f"{name}_{part}": (name, part) for name in _MEASURED for part in ("mean", "std")}
    fixed = {name: (name, "mean") for name in ("theta", "most", *_PROMISES)}
    summary = groups.agg(
        budget=("budget", "first"), seeds=("seed", "size"), **averaged, **fixed
    ).reset_index()
    summary["attainable"] = list(
        map(attainable, summary["setting"], summary["method"], summary["theta"])
    )
    return in_paper_order(summary, [*PLACE, "method"])


def attainable(setting: str, method: str, theta: float) -> float:
    """The largest AUC that any attack on an edge can have, where noised sums are released once, in
    one layer; NaN elsewhere.

    An edge changes two rows by 1 at most, so that with the edge and without, the best score is a
    normal variable with means √2/θ apart in its standard deviation.  Its AUC is Φ(1/θ), which
    canaries attain, as the rows of their ends have norm 1.
    """
    options = changes_of(method)
    sums = variants.base(method) in ("gap", "vesper_gin") and options.get("bounding") == "none"
    once = options.get("release") == "one_shot" and changes_of(setting).get("layers") == 1
    return float(norm.cdf(1 / theta)) if sums and once and theta > 0 else math.nan


def _block(block: pd.DataFrame) -> str:
    nodes, edges = [], []
    for line in records(block):
        of = [method_title(line["method"]), _epsilon(line["budget"]), f"{line['theta']:.4g}"]
        found = {
            name: md.plus_minus(line[f"{name}_mean"], line[f"{name}_std"]) for name in _MEASURED
        }
        nodes.append([*of, *(found[name] for name in _MEASURED if name not in ("edge_auc", "low"))])
        promises = [_epsilon(line[name]) for name in _PROMISES]
        best = (
            ""
            if line["attainable"] is None or math.isnan(line["attainable"])
            else f"{line['attainable']:.4f}"
        )
        edges.append([*of, found["edge_auc"], best, found["low"], f"{line['most']:.2f}", *promises])
    head = ["", "budget", "θ"]
    of_nodes = md.table(
        [*head, "AUC, shadow", "AUC, entropy", "accuracy inside", "accuracy outside"], nodes
    )
    promised = [f"promised, {name}" for name in PROMISES]
    of_edges = md.table([*head, "AUC", "attainable", "ε at least", "most", *promised], edges)
    return f"Nodes:\n\n{of_nodes}\nEdges:\n\n{of_edges}"


def _epsilon(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.4g}"


def figure(summary: pd.DataFrame) -> Figure:
    """AUC over the budget, ∞ last, with standard deviations: a panel a place and attack, a line a
    method.
    """
    lines = [{**line, "line": without(line["method"], ["epsilon"])} for line in records(summary)]
    names = list(dict.fromkeys(line["line"] for line in lines))
    budgets, of = sorted({line["budget"] for line in lines}), places(summary)
    looks = drawing.looks({name: name for name in names})
    shown = {
        f"{panel_title(summary, *place)}: {ATTACKS[attack]}": (*place, attack)
        for place in of
        for attack in ATTACKS
    }
    with drawing.style():
        drawn, axes = drawing.tiles(list(shown), 1.5, len(ATTACKS))
        for ax, (setting, dataset, attack) in zip(axes.flat, shown.values(), strict=True):
            ax.axhline(0.5, color=drawing.INK, linewidth=0.8, zorder=1)
            here = [
                line for line in lines if (line["setting"], line["dataset"]) == (setting, dataset)
            ]
            for k, name in enumerate(names):
                points = sorted(
                    (line for line in here if line["line"] == name), key=lambda line: line["budget"]
                )
                offset = 0.6 * ((k + 0.5) / len(names) - 0.5)
                at = [budgets.index(line["budget"]) + offset for line in points]
                means = [line[f"{attack}_mean"] for line in points]
                spread = [line[f"{attack}_std"] or 0.0 for line in points]
                ax.errorbar(
                    at, means, spread, linewidth=1.1, elinewidth=0.8, markersize=4, **looks[name]
                )
            ax.set_ylim(0.4, 1.05)
            ax.set_xticks(range(len(budgets)), [_epsilon(budget) for budget in budgets])
            ax.set_xlim(-0.5, len(budgets) - 0.5)
        for ax in axes[:, 0]:
            ax.set_ylabel("AUC of the attack")
        most = {
            attack: summary.loc[summary["budget"] < math.inf, f"{attack}_mean"].max()
            for attack in ATTACKS
        }
        title = ", ".join(f"{auc:.2f} ({ATTACKS[attack]})" for attack, auc in most.items())
        handles = [drawing.sample(method_title(name), **look) for name, look in looks.items()]
        drawing.head(
            drawn,
            f"Under a budget attacks reach an AUC of {title}\nAttacks on vertical training",
            handles,
            columns=2,
            below="privacy budget ε",
        )
    return drawn
