"""What NeighGen gives nodes at the border of their client, beside what they lack (FedSage, Appendix D.1).

Seen by the experimenter, who knows the whole graph.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.preprocessing import normalize

from feddep.experiment.plan import Run
from feddep.graph.graph import Graph
from feddep.graph.halo import missing_neighbours
from feddep.graph.partition import Partition
from feddep.measurements import Tables
from feddep.methods.method import StepResult
from feddep.methods.shared.impairing_clients import impair_client
from feddep.reporting import drawing, published
from feddep.reporting import markdown as md
from feddep.reporting.frames import CELL, client_numbers, in_paper_order, of_place, records
from feddep.reporting.labels import distinguishing, method_title, place_title, sort_methods
from feddep.reporting.main_table import OURS
from feddep.training.evaluator import mean_adjacency
from feddep.training.task import Task
from feddep.utils.errors import ConfigError

ALL, MISSING = "all", "missing"
"""Which nodes are averaged over: all, or those that miss a neighbour, which alone mending can help."""
NEIGHBOURHOODS = ("local", "mended", "empty", "counted")
"""Which neighbourhoods are compared with the true ones, see :func:`neighbourhood_distances`."""
NORMS = {"local_l1": "l1", "local_l2": "l2"}
"""The neighbourhoods at the client once more, with each node's features divided by this norm of them."""
_ROWS = 512
"""Neighbourhoods of so many nodes are compared at once."""
_NOTES = """\
*Distance* of a node v: ‖mean x over some neighbours − mean x over v's true neighbours‖₂, for its neighbours at its own client
(*local*), these and the generated ones (*mended*), these and as many neighbours whose features are all zero (*zeros*): what a
generator gains that only predicts a number, and the same with the true number of missing neighbours (*counted*). Mean ± standard
deviation over nodes, both averaged over seeds. *mended / local*: below 1, mending brings neighbourhoods nearer to the true ones.
A node that misses no neighbour has local distance 0, so that mending can help only the nodes that miss one. *FedSage paper*: its
Table 1 of Appendix D. It does not say how features are scaled, so compare its ratios. The rows *ℓ1* and *ℓ2* have the local
distance with each node's features divided by their sum or their Euclidean norm.
"""
_COUNTS = """\
*Number*: mean of |ñ_v − n_v| over nodes, for the number n_v of neighbours that a node misses and dGen's ñ_v, rounded; beside it
the same for guesses that need no training: no neighbour for any node, the mean number, rounded, for all, and by *degree* what an
impaired subgraph lets expect, h / (1 − h) times the number of a node's neighbours at its client, rounded, with the share h of
nodes that impairing hides. *Correlation*: of ñ_v and n_v over nodes, and of that multiple of the degree and n_v; dGen's encoder
averages over neighbours and cannot see how many there are. Means over seeds. The figure is `figures/missing_neighbours`.
"""
_CELL = list(CELL)
_LARGEST = 10
"""From here on numbers of neighbours share a place of the figure."""


def measure(run: Run, task: Task, parameters: Any, results: Mapping[str, StepResult]) -> Tables:
    """Distances and counts of a run.

    Raises:
        ConfigError: if the run has no clients, or its generators generate no features.
    """
    generated = results["generator"]
    if task.partition is None or not generated.of_clients("features"):
        raise ConfigError(f"{task.name} generates no features of neighbours, so there is nothing to compare")
    return {
        "distances": distances(task.graph, task.partition, generated),
        "counts": counts(task, parameters, generated),
    }


def distances(graph: Graph, partition: Partition, generated: StepResult) -> list[dict[str, Any]]:
    """How far neighbourhoods are from the true ones, before and after mending (Table 1).

    Returns:
        A row for each of :data:`ALL` and :data:`MISSING` and each of :data:`NEIGHBOURHOODS` and :data:`NORMS`: nodes,
        neighbourhood, count (of nodes), mean and std of the distance over these nodes; std is the sample standard deviation, NaN
        for a single node.
    """
    found = neighbourhood_distances(graph, partition, generated)
    found |= {name: local_distances(graph, partition, normalize(graph.features, norm)) for name, norm in NORMS.items()}
    chosen = {ALL: np.full(graph.num_nodes, True), MISSING: _missing(graph, partition) > 0}
    rows = []
    for nodes, which in chosen.items():
        for neighbourhood, of_all in found.items():
            of_nodes = of_all[which].astype(np.float64)
            mean = float(of_nodes.mean()) if len(of_nodes) else np.nan
            std = float(of_nodes.std(ddof=1)) if len(of_nodes) > 1 else np.nan
            rows.append({"nodes": nodes, "neighbourhood": neighbourhood, "count": len(of_nodes), "mean": mean, "std": std})
    return rows


def counts(task: Task, parameters: Any, generated: StepResult) -> list[dict[str, Any]]:
    """How many neighbours nodes miss, and how many dGen predicts, rounded as the paper does (Figure 1).

    Returns:
        A row for each triple that occurs: missing, predicted, degree, the number of neighbours at the node's client, and nodes,
        the number of nodes with this triple; expected, what impairing lets expect of such a degree, not rounded.
    """
    graph, partition = task.graph, task.partition
    assert partition is not None
    missing = _missing(graph, partition)
    predicted = np.rint(predicted_neighbours(graph, partition, generated)).astype(np.int64)
    triples, nodes = np.unique(np.stack([missing, predicted, graph.degrees - missing]), axis=1, return_counts=True)
    hidden = [len(impair_client(task, parameters, i, client).hidden) for i, client in enumerate(task.subgraphs())]
    odds = sum(hidden) / (graph.num_nodes - sum(hidden))
    return [
        {"missing": lost, "predicted": number, "degree": degree, "expected": odds * degree, "nodes": size}
        for (lost, number, degree), size in zip(triples.T.tolist(), nodes.tolist(), strict=True)
    ]


def _missing(graph: Graph, partition: Partition) -> np.ndarray:
    """n_v, the number of neighbours of each node that other clients hold; int64, shape (n,)."""
    return np.diff(missing_neighbours(graph, partition).indptr).astype(np.int64)


def predicted_neighbours(graph: Graph, partition: Partition, generated: StepResult) -> np.ndarray:
    """ñ_v of each node of the global graph, as the client that holds it predicts it (Figure 1); float32, shape (n,).

    Args:
        graph: the global graph.
        partition: which client holds which node.
        generated: what the stage ``generator`` has made.
    """
    predicted = np.zeros(graph.num_nodes, dtype=np.float32)
    for client, counts in enumerate(generated.of_clients("count")):
        predicted[partition.nodes(client)] = counts.cpu().numpy()
    return predicted


def neighbourhood_distances(graph: Graph, partition: Partition, generated: StepResult) -> dict[str, np.ndarray]:
    """Of each node of the global graph ‖mean x over some neighbours − mean x over N(v)‖₂ (Table 1).

    The paper says "the L2 distance between the averaged feature distributions"; a mean over no neighbours is 0.

    Returns:
        For each of :data:`NEIGHBOURHOODS` float32, shape (n,).  ``local``: over N_i(v), the neighbours in the client's own
        subgraph; ``mended``: over N'_i(v), these and the generated ones; ``empty``: over N'_i(v), but with zeros for the
        features of the generated ones, what a generator gains that only predicts a number; ``counted``: with as many zeros as
        v misses neighbours, what a generator gains that knows the number and nothing else.
    """
    distances = {name: np.zeros(graph.num_nodes, dtype=np.float32) for name in NEIGHBOURHOODS}
    true, missing = mean_adjacency(graph), _missing(graph, partition)
    made = zip(generated.of_clients("owner"), generated.of_clients("features"), strict=True)
    for client, (owners, features) in enumerate(made):
        nodes, owner, dense = partition.nodes(client), owners.cpu().numpy(), features.cpu().numpy()
        x, adjacency = graph.features[nodes], graph.adjacency[nodes][:, nodes]
        degrees, new = np.diff(adjacency.indptr), np.bincount(owner, minlength=len(nodes))
        ends = np.cumsum(np.concatenate([[0], new]))  # generated neighbours are ordered by the node that they are for
        for start in range(0, len(nodes), _ROWS):
            rows = slice(start, start + _ROWS)
            chosen, counts = nodes[rows], new[rows]
            of_rows = dense[ends[start] : ends[min(start + _ROWS, len(nodes))]].astype(np.float32)
            which = np.repeat(np.arange(len(chosen)), counts), np.arange(len(of_rows))
            links = sp.csr_matrix((np.ones(len(of_rows), dtype=np.float32), which), shape=(len(chosen), len(of_rows)))
            goal = (true[chosen] @ graph.features).toarray()
            local = (adjacency[rows] @ x).toarray()
            means = {
                "local": local / np.maximum(degrees[rows], 1)[:, None],
                "mended": (local + links @ of_rows) / np.maximum(degrees[rows] + counts, 1)[:, None],
                "empty": local / np.maximum(degrees[rows] + counts, 1)[:, None],
                "counted": local / np.maximum(degrees[rows] + missing[chosen], 1)[:, None],
            }
            for name, mean in means.items():
                distances[name][chosen] = np.linalg.norm(mean - goal, axis=1)
    return distances


def local_distances(graph: Graph, partition: Partition, features: sp.csr_matrix) -> np.ndarray:
    """The distance ``local`` of :func:`neighbourhood_distances` for other features of the nodes; float32, shape (n,)."""
    true = mean_adjacency(graph)
    inside = true - true.multiply(missing_neighbours(graph, partition).sign())
    return sp.linalg.norm((normalize(inside, "l1") - true) @ features, axis=1)


def page(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """tables/neighbourhoods.csv and .md, tables/missing_neighbours.csv, and figures/missing_neighbours."""
    near, missing = summarise(tables["distances"]), summarise_counts(tables["counts"])
    return {
        "tables/neighbourhoods.csv": near,
        "tables/missing_neighbours.csv": missing,
        "tables/neighbourhoods.md": markdown(near, missing),
        "figures/missing_neighbours": figure(tables["counts"]),
    }


def summarise(distances: pd.DataFrame) -> pd.DataFrame:
    """Mean distances, one row a place, choice of nodes and neighbourhood, in the papers' order.

    Returns:
        setting, dataset, method, clients, nodes, neighbourhood; seeds; mean and std over nodes, averaged over seeds; and
        paper_fedsage_mean and paper_fedsage_std, of FedSage+ and all nodes, NaN for what the paper has not.
    """
    keys = [*_CELL, "nodes", "neighbourhood"]
    summary = distances.groupby(keys, sort=False).agg(seeds=("seed", "size"), mean=("mean", "mean"), std=("std", "mean"))
    theirs = published.renamed(published.feature_distances(), "fedsage").assign(method="fedsage_plus", nodes=ALL)
    return in_paper_order(summary.reset_index().merge(theirs, how="left", on=keys[1:]))


def summarise_counts(counts: pd.DataFrame) -> pd.DataFrame:
    """How well numbers of missing neighbours are predicted, one row a place, in the papers' order.

    Returns:
        setting, dataset, method, clients; seeds; and means over seeds of missing (share of nodes that miss a neighbour),
        error, error_none, error_mean and error_degree (mean |ñ − n| of dGen, of the guess 0, of the rounded mean and of what the
        degree lets expect, rounded), correlation and correlation_degree.
    """
    rows = [
        {**dict(zip([*_CELL, "seed"], key, strict=True)), **_scores(run)}
        for key, run in counts.groupby([*_CELL, "seed"], sort=False)
    ]
    of_runs = pd.DataFrame(rows)
    values = ["missing", "error", "error_none", "error_mean", "error_degree", "correlation", "correlation_degree"]
    summary = of_runs.groupby(_CELL, sort=False)[values].mean()
    summary.insert(0, "seeds", of_runs.groupby(_CELL, sort=False).size())
    return in_paper_order(summary.reset_index())


def _scores(run: pd.DataFrame) -> dict[str, float]:
    columns = ("missing", "predicted", "expected", "nodes")
    true, guess, expected, nodes = (run[column].to_numpy(dtype=float) for column in columns)

    def error(predicted: np.ndarray | float) -> float:
        return float(np.average(np.abs(predicted - true), weights=nodes))

    def correlation(predicted: np.ndarray) -> float:
        covariance = np.cov(true, predicted, fweights=nodes.astype(int)) if nodes.sum() > 1 else np.zeros((2, 2))
        spread = float(np.sqrt(covariance[0, 0] * covariance[1, 1]))
        return float(covariance[0, 1] / spread) if spread else float("nan")

    return {
        "missing": float(nodes[true > 0].sum() / nodes.sum()),
        "error": error(guess),
        "error_none": error(0.0),
        "error_mean": error(float(np.rint(np.average(true, weights=nodes)))),
        "error_degree": error(np.rint(expected)),
        "correlation": correlation(guess),
        "correlation_degree": correlation(expected),
    }


def markdown(summary: pd.DataFrame, counts: pd.DataFrame) -> str:
    """A page: for each dataset the distances beside the paper's, then the numbers."""

    def body(block: pd.DataFrame) -> str:
        here = of_place(counts, *block[["setting", "dataset"]].iloc[0])
        return f"{_distances(block)}\n{_numbers(here)}"

    return f"# Mended neighbourhoods\n\n{_NOTES}\n{_COUNTS}\n{md.sections(summary, body)}"


def _distances(block: pd.DataFrame) -> str:
    lines = []
    for (method, clients), place in block.groupby(["method", "clients"], sort=False):
        name = [str(clients), method_title(str(method))]
        for nodes, title in ((ALL, "all"), (MISSING, "that miss one")):
            rows = {row["neighbourhood"]: row for row in records(place[place["nodes"] == nodes])}
            lines.append([*name, title, OURS, *_cells(rows, "")])
            if nodes == ALL and rows["local"]["paper_fedsage_mean"] is not None:
                lines.append(["", "", "", published.PAPERS["fedsage"], *_cells(rows, "paper_fedsage_")])
                for key, norm in NORMS.items():
                    local = md.plus_minus(rows[key]["mean"], rows[key]["std"])
                    lines.append(["", "", "", f"{OURS}, ℓ{norm[1:]}", local, "", "", "", ""])
            name = ["", ""]
    return md.table(["M", "", "nodes", "", "local", "mended", "zeros", "counted", "mended / local"], lines)


def _cells(rows: dict[str, dict[str, Any]], source: str) -> list[str]:
    means = {name: rows[name][f"{source}mean"] for name in NEIGHBOURHOODS}
    cells = [md.plus_minus(means[name], rows[name][f"{source}std"]) for name in NEIGHBOURHOODS]
    return [*cells, f"{means['mended'] / means['local']:.3f}" if means["local"] else ""]


def _numbers(block: pd.DataFrame) -> str:
    lines = []
    for row in records(block):
        errors = [f"{row[column]:.3f}" for column in ("error", "error_none", "error_mean", "error_degree")]
        correlations = [md.number(row[column], ".3f") for column in ("correlation", "correlation_degree")]
        name = [str(row["clients"]), method_title(row["method"]), f"{row['missing']:.1%}"]
        lines.append([*name, *errors, *correlations])
    guesses = [f"number: {guess}" for guess in ("dGen", "none", "mean", "degree")]
    return md.table(["M", "", "miss a neighbour", *guesses, "correlation: dGen", "degree"], lines)


def figure(counts: pd.DataFrame) -> Figure:
    """Predicted over true numbers of missing neighbours, all seeds together (FedSage, Figure 1 of Appendix D).

    A row of panels a setting and dataset, a column a number of clients, a line a method: the mean of what is predicted for
    nodes that miss so many.  Marks grow with the number of these nodes, on a logarithmic scale.  The axis ends a little above
    what is predicted, so that little of the line of what is missing is seen where next to nothing is predicted.
    """
    ordered = in_paper_order(counts)
    places = list(dict.fromkeys(ordered[["setting", "dataset"]].itertuples(index=False, name=None)))
    columns, several = client_numbers(ordered), ordered["setting"].nunique() > 1
    names = distinguishing(sort_methods(ordered["method"]))
    with drawing.style():
        size = (1.2 + 2.6 * len(columns), 1.2 + 1.8 * len(places))
        drawn, axes = drawing.panels(len(places), len(columns), size, sharex="all", sharey="row")
        for line, place in zip(axes, places, strict=True):
            here = of_place(ordered, *place)
            tops = [
                _draw(ax, here[(here["clients"] == clients) & (here["method"] == name)], k)
                for ax, clients in zip(line, columns, strict=True)
                for k, name in enumerate(names)
            ]
            for ax, clients in zip(line, columns, strict=True):
                ax.plot([0, _LARGEST], [0, _LARGEST], color=drawing.INK, linestyle="--", linewidth=0.9, zorder=1)
                ax.set_title(place_title(place[1], clients) + (f", setting {place[0]}" if several else ""), loc="left")
            line[0].set_ylim(-0.05 * max(1.0, *tops), 1.15 * max(1.0, *tops))
            line[0].set_ylabel("predicted, mean")
        for ax in axes[-1]:
            ax.set_xticks(range(_LARGEST + 1), [*map(str, range(_LARGEST)), f"{_LARGEST}+"])
            ax.set_xlabel("missing neighbours")
        handles = [
            drawing.sample(method_title(name), color=drawing.colour(k), marker=drawing.MARKERS[k % len(drawing.MARKERS)])
            for k, name in enumerate(names.values())
        ]
        handles.append(drawing.sample("as many as are missing", color=drawing.INK, linestyle="--"))
        drawing.head(drawn, "Numbers of missing neighbours", handles)
    return drawn


def _draw(ax: Axes, counts: pd.DataFrame, number: int) -> float:
    """One line, with the look of this number; returns the largest mean, 0 where there is nothing to draw."""
    of_bins = counts.assign(bin=counts["missing"].clip(upper=_LARGEST), total=counts["predicted"] * counts["nodes"])
    sums = of_bins.groupby("bin")[["total", "nodes"]].sum()
    means, colour = sums["total"] / sums["nodes"], drawing.colour(number)
    ax.plot(means.index, means, color=colour, linewidth=1.1)
    marker = drawing.MARKERS[number % len(drawing.MARKERS)]
    ax.scatter(means.index, means, s=3 + 6 * np.log10(sums["nodes"]), color=colour, marker=marker, linewidths=0, zorder=3)
    return float(means.max()) if len(means) else 0.0
