"""Attacks on vertical training: node membership by what a model answers, edges by what party B is sent (VESPER, Figure 4)."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.audit import node_membership, vertical_canaries
from feddep.audit.vertical_trainings import with_known_noise
from feddep.config import variants
from feddep.experiment.plan import Run
from feddep.measurements import Tables
from feddep.methods import registry
from feddep.methods.method import StepResult
from feddep.methods.vesper import METHODS
from feddep.reporting import drawing
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, of_place, records
from feddep.reporting.labels import dataset_title, method_title
from feddep.training.task import Task
from feddep.utils.errors import ConfigError

PLACE = ["setting", "dataset"]
ATTACKS = {
    "membership_auc": "node, shadow model",
    "entropy_auc": "node, entropy",
    "edge_auc": "edge, canaries",
}
"""The attacks by the column of their AUC."""
_MEASURED = (*ATTACKS, "accuracy_inside", "accuracy_outside", "low")
"""What is averaged over seeds."""
_PROMISES = tuple(f"promised_{name}" for name in vertical_canaries.PROMISES)
_NOTES = f"""\
**Nodes** (VESPER, Appendix C.7). Who attacks: somebody who may ask a trained model for the class posteriors of any node on the
full graph. What is asked: which nodes were in the subgraph that the model was trained on, a random half of all. *Shadow*: an
attack model that has learned from another model, which the attacker trained on other nodes. *Entropy*: nodes whose posterior has
the lower entropy count as members. AUC is 0.5 for guessing and 1 for certainty. *Accuracy* of the attacked model, inside and
outside: where it is the same, there is little to find. The paper attacks ogbn-products, Reddit and a graph of its own; these
are other graphs, so that no number of its Figure 4 can be set beside them. Whether a *node* was trained on is another question
than whether an *edge* exists: that this attack fails says nothing about edges, which are what the noise is for, and privacy of
edges promises nothing for nodes.

**Edges.** Who attacks: party B, which keeps all that it is sent in training and evaluation, and knows everything else as well:
features, weights, batches. What is asked: which of {vertical_canaries.CANARIES} additional pairs of nodes (canaries) are joined,
each by a coin of its own, in one training with all of them. *AUC*: of the scores of the pairs. *ε at least*: a lower bound with a
confidence of 95 %, at δ = {vertical_canaries.DELTA:g} (Steinke, Nasr and Jagielski, 2023); *most* is the bound if all guesses
were right, which so many canaries cannot exceed. *Promised*: ε at the same δ of the same training by the accountant `certified`,
the only one that is a guarantee, and by `rdp`, as the paper counts ([docs/vesper.md](../../docs/vesper.md)); ∞ where there is
none. A bound above a promise refutes it. A bound of 0 proves nothing: it is evidence only beside a run with little noise in which
the same attack succeeds.

*Budget*: ε for which θ was chosen, by the accountant that the method names, at the δ that it names; θ is that of the run on
the whole graph in all trainings here. Over seeds: mean ± sample standard deviation.
"""


def measure(run: Run, task: Task, parameters: Any, results: Mapping[str, StepResult]) -> Tables:
    """Attack a method of :data:`feddep.methods.vesper.METHODS`.

    Returns:
        ``vertical_attacks``: one row with budget (ε, None without one), theta (None without noise), and what
        :func:`feddep.audit.node_membership.measure` and :func:`feddep.audit.vertical_canaries.measure` return.

    Raises:
        ConfigError: if it is another method, whose parties hold something else.
    """
    method = registry.find(variants.base(run.method))
    if method not in METHODS:
        known = ", ".join(each.name for each in METHODS)
        raise ConfigError(f"the method {method.name} is attacked by the audit; vertical_attacks has attacks on {known}")
    fixed = with_known_noise(method, task, parameters)
    of = {"budget": getattr(parameters, "epsilon", None), "theta": getattr(fixed, "theta", None)}
    nodes, edges = (attack.measure(method, task, fixed) for attack in (node_membership, vertical_canaries))
    return {"vertical_attacks": [{**of, **nodes, **edges}]}


def page(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """tables/vertical_attacks.csv and .md, and figures/vertical_attacks."""
    summary = summarise(tables["vertical_attacks"])
    return {
        "tables/vertical_attacks.csv": summary,
        "tables/vertical_attacks.md": markdown(summary),
        "figures/vertical_attacks": figure(summary),
    }


def summarise(measured: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, one row a setting, dataset and method.

    Returns:
        setting, dataset, method, budget (∞ without one), theta (0 without noise), seeds; mean and std of the AUC of each
        attack, and of accuracy_inside, accuracy_outside and low, the bound on ε; most, the largest bound that could have been
        found; promised_certified and promised_rdp, the mean, ∞ where nothing is promised.
    """
    missing = {"budget": math.inf, "theta": 0.0, **dict.fromkeys(_PROMISES, math.inf)}
    known = measured.assign(**{column: measured[column].astype(float).fillna(value) for column, value in missing.items()})
    groups = known.groupby([*PLACE, "method"], sort=False)
    averaged = {f"{name}_{part}": (name, part) for name in _MEASURED for part in ("mean", "std")}
    fixed = {name: (name, "mean") for name in ("theta", "most", *_PROMISES)}
    summary = groups.agg(budget=("budget", "first"), seeds=("seed", "size"), **averaged, **fixed).reset_index()
    return in_paper_order(summary, [*PLACE, "method"])


def markdown(summary: pd.DataFrame) -> str:
    """A page with two tables a dataset, of nodes and of edges; a line a method."""
    return f"# Attacks on vertical training\n\n{_NOTES}\n{md.sections(summary, _block)}"


def _block(block: pd.DataFrame) -> str:
    nodes, edges = [], []
    for line in records(block):
        of = [method_title(line["method"]), _epsilon(line["budget"]), f"{line['theta']:.4g}"]
        found = {name: md.plus_minus(line[f"{name}_mean"], line[f"{name}_std"]) for name in _MEASURED}
        nodes.append([*of, *(found[name] for name in _MEASURED if name not in ("edge_auc", "low"))])
        promises = [_epsilon(line[name]) for name in _PROMISES]
        edges.append([*of, found["edge_auc"], found["low"], f"{line['most']:.2f}", *promises])
    head = ["", "budget", "θ"]
    of_nodes = md.table([*head, "AUC, shadow", "AUC, entropy", "accuracy inside", "accuracy outside"], nodes)
    promised = [f"promised, {name}" for name in vertical_canaries.PROMISES]
    of_edges = md.table([*head, "AUC", "ε at least", "most", *promised], edges)
    return f"Nodes:\n\n{of_nodes}\nEdges:\n\n{of_edges}"


def _epsilon(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.4g}"


def figure(summary: pd.DataFrame) -> Figure:
    """AUC over the budget, ∞ last, with standard deviations: a panel a place, a colour a method, a dash an attack."""
    lines = [{**line, "line": _without_budget(line["method"])} for line in records(summary)]
    names = list(dict.fromkeys(line["line"] for line in lines))
    budgets = sorted({line["budget"] for line in lines})
    places = list(dict.fromkeys((line["setting"], line["dataset"]) for line in lines))
    several = len({setting for setting, _ in places}) > 1
    curves = [(name, attack) for name in names for attack in ATTACKS]
    looks = {attack: {"linestyle": drawing.DASHES[k], "marker": drawing.MARKERS[k]} for k, attack in enumerate(ATTACKS)}
    with drawing.style():
        drawn, axes = drawing.tiles(len(places), 2, lambda rows, columns: (0.8 + 3.8 * columns, 1.6 + 2.8 * rows))
        for ax, (setting, dataset) in zip(axes.flat, places, strict=False):
            here = records(of_place(summary, setting, dataset))
            ax.axhline(0.5, color=drawing.INK, linewidth=0.8, zorder=1)
            for k, (name, attack) in enumerate(curves):
                points = sorted(
                    (line for line in here if _without_budget(line["method"]) == name), key=lambda line: line["budget"]
                )
                offset = 0.6 * ((k + 0.5) / len(curves) - 0.5)
                at = [budgets.index(line["budget"]) + offset for line in points]
                means = [line[f"{attack}_mean"] for line in points]
                spread = [line[f"{attack}_std"] or 0.0 for line in points]
                shade = drawing.colour(names.index(name))
                ax.errorbar(at, means, spread, color=shade, linewidth=1.1, elinewidth=0.8, markersize=4, **looks[attack])
            of_setting = f", setting {setting}" if several else ""
            ax.set_title(f"{dataset_title(dataset)}{of_setting}", loc="left")
            ax.set_xticks(range(len(budgets)), [_epsilon(budget) for budget in budgets])
            ax.set_xlim(-0.5, len(budgets) - 0.5)
            ax.set_xlabel("privacy budget ε")
        for ax in axes[:, 0]:
            ax.set_ylabel("AUC of the attack")
        shades = [drawing.sample(method_title(name), color=drawing.colour(k)) for k, name in enumerate(names)]
        dashes = [drawing.sample(title, color=drawing.INK, **looks[attack]) for attack, title in ATTACKS.items()]
        drawing.head(drawn, "Attacks on vertical training", [*shades, *dashes], columns=2)
    return drawn


def _without_budget(spelled: str) -> str:
    """The name of a method without the option that is on the axis."""
    name, changes = variants.read(spelled)
    return variants.format_name(name, {key: value for key, value in changes.items() if key != "epsilon"})
