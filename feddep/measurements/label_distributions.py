"""Which labels clients hold, and which labels trained models predict on the global graph (FedSage, Figure 4)."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from feddep.experiment.plan import Run
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.measurements import CLASSIFIER, Tables
from feddep.methods.method import StepResult
from feddep.reporting import drawing
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import method_title, place_title, sort_methods
from feddep.training.task import Task
from feddep.utils.errors import ConfigError

PLACE = ["setting", "dataset", "clients"]
_NOTES = """\
How far a distribution p over classes is from the true one q: total variation, ½ Σ|p − q|, the share of nodes that would have to
change their class. *Held*: labels of a client's nodes beside those of all nodes, mean over clients. Then what models predict for
the test nodes of the global graph, beside these nodes' labels; where each client has its own model, the mean over them. Over
seeds: mean ± sample standard deviation.
"""


def measure(run: Run, task: Task, parameters: Any, results: Mapping[str, StepResult]) -> Tables:
    """All counts of a run.

    Returns:
        ``label_distributions``: rows with what: ``held`` by a client, ``predicted`` by a model, or ``true`` of the test nodes;
        number: of the client or model, counted from 0; label: a class; nodes: how many.

    Raises:
        ConfigError: as :func:`predicted`.
    """
    truth = np.bincount(task.graph.labels[task.split.test], minlength=task.graph.num_classes)
    counts = {"true": truth[None], "predicted": predicted(task, results[CLASSIFIER].tensors)}
    if task.partition is not None:
        counts["held"] = held(task.graph, task.partition)
    rows = [
        {"what": what, "number": number, "label": label, "nodes": int(nodes)}
        for what, of_models in counts.items()
        for (number, label), nodes in np.ndenumerate(of_models)
    ]
    return {"label_distributions": rows}


def held(graph: Graph, partition: Partition) -> np.ndarray:
    """How many nodes of each class each client holds (Figure 4a); int64, shape (M, C)."""
    labels = (graph.labels[partition.nodes(client)] for client in range(partition.num_clients))
    return np.stack([np.bincount(each, minlength=graph.num_classes) for each in labels])


def predicted(task: Task, weights: Mapping[str, Tensor]) -> np.ndarray:
    """How many of the global graph's test nodes each model gives each class (Figure 4b); int64, shape (models, C).

    Args:
        task: the run that the models were trained in.
        weights: those of one shared model, or of one a client, as :meth:`feddep.training.task.RunResult.weights` names them.

    Raises:
        ConfigError: if they are not a GraphSAGE's: other classifiers read more than features and edges.
    """
    counts = []
    for of_model in _by_model(weights):
        model = task.new_model()
        try:
            model.load_state_dict(of_model)
        except RuntimeError:
            raise ConfigError(f"{task.name} does not train a plain GraphSAGE, so its predictions cannot be shown") from None
        classes = task.evaluator.logits(model.eval()).argmax(dim=1).cpu().numpy()
        counts.append(np.bincount(classes[task.split.test], minlength=task.graph.num_classes))
    return np.stack(counts)


def _by_model(weights: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    models: dict[int, dict[str, Tensor]] = {}
    for name, tensor in weights.items():
        prefix = re.match(r"client(\d+)\.", name)
        number, rest = (int(prefix[1]), name[prefix.end() :]) if prefix else (0, name)
        models.setdefault(number, {})[rest] = tensor
    return [models[number] for number in sorted(models)]


def page(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """tables/label_distributions.csv and .md, and figures/label_distributions."""
    counts = tables["label_distributions"]
    summary = summarise(counts)
    return {
        "tables/label_distributions.csv": summary,
        "tables/label_distributions.md": markdown(summary),
        "figures/label_distributions": figure(counts),
    }


def summarise(measured: pd.DataFrame) -> pd.DataFrame:
    """Distance of distributions from the true ones, one row a place and method, datasets in the papers' order.

    Returns:
        setting, dataset, clients, method (NA for what clients hold), seeds, mean, std: see the notes of the page.
    """
    rows = []
    for key, run in measured.groupby([*PLACE, "method", "seed"], sort=False, dropna=False):
        counts = {what: part.pivot(index="number", columns="label", values="nodes") for what, part in run.groupby("what")}
        of = dict(zip([*PLACE, "method", "seed"], key, strict=True))
        rows.append({**of, "distance": _distance(counts["predicted"], counts["true"])})
        if "held" in counts:
            rows.append({**of, "method": None, "distance": _distance(counts["held"], counts["held"].sum().to_frame().T)})
    # Every method of a place has the same clients, whose distance is to count once.
    table = pd.DataFrame(rows).drop_duplicates([*PLACE, "method", "seed"])
    summary = (
        table.groupby([*PLACE, "method"], sort=False, dropna=False)["distance"]
        .agg(seeds="size", mean="mean", std="std")
        .reset_index()
        .astype({"clients": "Int64"})
    )
    return in_paper_order(summary, [*PLACE, "method"])


def _distance(counts: pd.DataFrame, truth: pd.DataFrame) -> float:
    """Mean total variation of the rows of ``counts`` from the only row of ``truth``."""
    p, q = (table.to_numpy(dtype=float) for table in (counts, truth))
    return float(0.5 * np.abs(p / p.sum(axis=1, keepdims=True) - q / q.sum()).sum(axis=1).mean())


def markdown(summary: pd.DataFrame) -> str:
    """A page with a table a dataset; a line a number of clients and method."""
    return f"# Label distributions\n\n{_NOTES}\n{md.sections(summary, _block)}"


def _block(block: pd.DataFrame) -> str:
    lines = []
    for line in records(block):
        clients = "whole graph" if line["clients"] is None else str(line["clients"])
        name = "held by clients" if line["method"] is None else method_title(line["method"])
        lines.append([clients, name, md.plus_minus(line["mean"], line["std"])])
    return md.table(["M", "", "distance from the true distribution"], lines)


def figure(measured: pd.DataFrame) -> Figure:
    """Shares of classes for the first seed, a row of panels a place: left what clients hold, right what models predict."""
    first = measured[measured["seed"] == measured["seed"].iloc[0]]
    places = list(dict.fromkeys((line["setting"], line["dataset"], line["clients"]) for line in records(first[PLACE])))
    places = [place for place in places if place[2] is not None] or places
    bars = [(_held(first, place), _predicted(first, place)) for place in places]
    classes = int(first["label"].max()) + 1
    heights = [1.2 + 0.21 * max(len(left), len(right)) for left, right in bars]
    several = first["setting"].nunique() > 1
    with drawing.style():
        drawn, axes = drawing.panels(len(places), 2, (9.0, 0.8 + sum(heights)), height_ratios=heights)
        for line, (setting, dataset, clients), (left, right) in zip(axes, places, bars, strict=True):
            of_setting = f", setting {setting}" if several else ""
            for ax, named, shown in ((line[0], left, "held"), (line[1], right, "predicted")):
                _draw(ax, named)
                ax.set_title(f"{place_title(dataset, clients)}{of_setting}: {shown}", loc="left")
        for ax in axes[-1]:
            ax.set_xlabel("share of nodes")
        handles = [drawing.sample(f"class {k}", color=drawing.colour(k), marker="s", linestyle="none") for k in range(classes)]
        drawing.head(drawn, "Label distributions", handles, columns=8)
    return drawn


Place = tuple[Any, ...]
"""TrainingConfig, dataset and number of clients."""
Bars = list[tuple[str, np.ndarray]]
"""Distributions over classes, each with its name."""


def _held(counts: pd.DataFrame, place: Place) -> Bars:
    """Of all nodes and of each client's; every method of a place has the same clients."""
    here = _at(counts, place, "held")
    if here.empty:
        return []
    here = here[here["method"] == here["method"].iloc[0]]
    by_client = here.pivot(index="number", columns="label", values="nodes").to_numpy(dtype=float)
    return [("all nodes", by_client.sum(axis=0)), *((f"client {k + 1}", row) for k, row in enumerate(by_client))]


def _predicted(counts: pd.DataFrame, place: Place) -> Bars:
    """Of the test nodes by their labels, and as each model predicts them; models that see the whole graph stand at each M."""
    truth = _at(counts, place, "true")
    truth = truth[truth["method"] == truth["method"].iloc[0]]
    bars: Bars = [("test nodes", truth.sort_values("label")["nodes"].to_numpy(dtype=float))]
    whole = _at(counts, (*place[:2], None), "predicted")
    here = pd.concat([whole, _at(counts, place, "predicted")]).drop_duplicates(["method", "number", "label"])
    for method in sort_methods(here["method"]):
        models = here[here["method"] == method].pivot(index="number", columns="label", values="nodes")
        title = method_title(method)
        names = [title] if len(models) == 1 else [f"{title}, client {k + 1}" for k in range(len(models))]
        bars += zip(names, models.to_numpy(dtype=float), strict=True)
    return bars


def _at(counts: pd.DataFrame, place: Place, what: str) -> pd.DataFrame:
    setting, dataset, clients = place
    at = counts["clients"].isna() if clients is None else (counts["clients"] == clients).fillna(False)
    return counts[(counts["setting"] == setting) & (counts["dataset"] == dataset) & at & (counts["what"] == what)]


def _draw(ax: Axes, bars: Bars) -> None:
    for y, (_, counts) in enumerate(bars):
        widths = counts / counts.sum()
        starts = np.cumsum(widths) - widths
        for k, (start, width) in enumerate(zip(starts, widths, strict=True)):
            colour = drawing.colour(k)
            ax.barh(y, width, left=start, height=0.78, color=colour, edgecolor="white", linewidth=0.5)
    ax.set_yticks(range(len(bars)), [name for name, _ in bars])
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.set_xlim(0, 1)
    ax.grid(axis="y", visible=False)
