"""The page: distances beside the paper's, and numbers of missing neighbours, a table each for every
dataset; and a figure.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.config.loading import STUDIES
from feddep.reporting import figures, published
from feddep.reporting import markdown as md
from feddep.reporting.frames import CELL, in_paper_order, of_place, records
from feddep.reporting.labels import distinguishing, method_title, place_title
from studies import measuring
from studies.fedsage.neighbourhoods.measure import ALL, MISSING, NEIGHBOURHOODS, NORMS

_CELL = list(CELL)


def page(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The tables of distances and of numbers, the text, and a figure of the numbers."""
    near, missing = summarise(tables["distances"]), summarise_counts(tables["counts"])

    def body(block: pd.DataFrame) -> str:
        place = block[["setting", "dataset"]].iloc[0]
        return f"{_distances(block)}\n{_numbers(of_place(missing, *place))}"

    text = measuring.text("neighbourhoods", tables=md.sections(near, body))
    return {
        "table.csv": near,
        "missing_neighbours.csv": missing,
        "page.md": text,
        "figure": figure(missing),
    }


def summarise(distances: pd.DataFrame) -> pd.DataFrame:
    """Mean distances, one row a place, choice of nodes and neighbourhood, in the papers' order.

    Returns:
        setting, dataset, method, clients, nodes, neighbourhood; seeds; mean and std over nodes,
        averaged over seeds; and paper_fedsage_mean and paper_fedsage_std, of FedSage+ and all
        nodes, NaN for what the paper has not.
    """
    keys = [*_CELL, "nodes", "neighbourhood"]
    summary = distances.groupby(keys, sort=False).agg(
        seeds=("seed", "size"), mean=("mean", "mean"), std=("std", "mean")
    )
    theirs = pd.read_csv(STUDIES / "fedsage" / "published" / "neighgen_feature_distance.csv")
    theirs = theirs.drop(columns=["paper", "table"]).assign(method="fedsage_plus", nodes=ALL)
    theirs = theirs.rename(columns={part: f"paper_fedsage_{part}" for part in ("mean", "std")})
    return in_paper_order(summary.reset_index().merge(theirs, how="left", on=keys[1:]))


def summarise_counts(counts: pd.DataFrame) -> pd.DataFrame:
    """How well numbers of missing neighbours are predicted, one row a place, in the papers' order.

    Returns:
        setting, dataset, method, clients; seeds; and means over seeds of missing (share of nodes
        that miss a neighbour), error, error_none, error_mean and error_degree (mean |ñ − n| of
        dGen, of the guess 0, of the rounded mean and of what the degree lets expect, rounded),
        correlation and correlation_degree.
    """
    runs = counts.groupby([*_CELL, "seed"], sort=False)
    scores = pd.DataFrame({key: _scores(run) for key, run in runs}).T.rename_axis([*_CELL, "seed"])
    summary = scores.groupby(_CELL, sort=False).mean()
    summary.insert(0, "seeds", scores.groupby(_CELL, sort=False).size())
    return in_paper_order(summary.reset_index())


def _scores(run: pd.DataFrame) -> dict[str, float]:
    columns = ("missing", "predicted", "expected", "nodes")
    true, guess, expected, nodes = (run[column].to_numpy(dtype=float) for column in columns)

    def error(predicted: np.ndarray | float) -> float:
        return float(np.average(np.abs(predicted - true), weights=nodes))

    def correlation(predicted: np.ndarray) -> float:
        covariance = np.cov(true, predicted, fweights=nodes.astype(int))
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


def _distances(block: pd.DataFrame) -> str:
    lines = []
    for (method, clients), place in block.groupby(["method", "clients"], sort=False):
        name = [str(clients), method_title(str(method))]
        for nodes, title in ((ALL, "all"), (MISSING, "that miss one")):
            rows = {row["neighbourhood"]: row for row in records(place[place["nodes"] == nodes])}
            lines.append([*name, title, "ours", *_cells(rows, "")])
            if nodes == ALL and rows["local"]["paper_fedsage_mean"] is not None:
                lines.append(
                    ["", "", "", published.papers()["fedsage"], *_cells(rows, "paper_fedsage_")]
                )
                for key, norm in NORMS.items():
                    local = md.plus_minus(rows[key]["mean"], rows[key]["std"])
                    lines.append(["", "", "", f"ours, ℓ{norm[1:]}", local, "", "", "", ""])
            name = ["", ""]
    return md.table(
        ["M", "", "nodes", "", "local", "mended", "zeros", "counted", "mended / local"], lines
    )


def _cells(rows: dict[str, dict[str, Any]], source: str) -> list[str]:
    means = {name: rows[name][f"{source}mean"] for name in NEIGHBOURHOODS}
    cells = [md.plus_minus(means[name], rows[name][f"{source}std"]) for name in NEIGHBOURHOODS]
    return [*cells, f"{means['mended'] / means['local']:.3f}" if means["local"] else ""]


def _numbers(block: pd.DataFrame) -> str:
    lines = []
    for row in records(block):
        errors = [
            f"{row[column]:.3f}" for column in ("error", "error_none", "error_mean", "error_degree")
        ]
        correlations = [
            md.number(row[column], ".3f") for column in ("correlation", "correlation_degree")
        ]
        name = [str(row["clients"]), method_title(row["method"]), f"{row['missing']:.1%}"]
        lines.append([*name, *errors, *correlations])
    guesses = [f"number: {guess}" for guess in ("dGen", "none", "mean", "degree")]
    return md.table(["M", "", "miss a neighbour", *guesses, "correlation: dGen", "degree"], lines)


def figure(summary: pd.DataFrame) -> Figure:
    """Errors of :func:`summarise_counts` less those of the guess 0: a row a place and number of
    clients, a colour a method.
    """
    names = distinguishing(summary["method"])
    several = summary["setting"].nunique() > 1
    drawn: dict[str, dict[str, Any]] = {}
    for row in records(summary):
        place = place_title(row["dataset"], row["clients"])
        place += f", {row['setting']}" if several else ""
        drawn.setdefault(place, {})[method_title(names[row["method"]])] = {
            "mean": row["error"] - row["error_none"],
            "method": row["method"],
        }
    worse = (summary["error"] > summary["error_none"]).sum()
    title = f"Predicted numbers err by more than the guess 0 in {worse} of {len(summary)} cases"
    title += "\nHow many neighbours a node misses, as NeighGen's dGen predicts it"
    return figures.forests(title, {"": drawn}, "mean error less that of the guess 0")
