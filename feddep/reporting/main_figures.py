"""Figures of the main tables: gains and training curves of a setting, partitions."""

from collections.abc import Collection
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import figures, load
from feddep.reporting.frames import (
    beside_clients,
    client_numbers,
    in_paper_order,
    of_place,
    records,
)
from feddep.reporting.labels import dataset_title, method_title, place_title, places
from feddep.reporting.published import OURS, papers
from feddep.reporting.statistics import REFERENCE


def accuracy(setting: str, summary: pd.DataFrame) -> Figure:
    """Gains over FedAvg, ours beside the papers': a panel a dataset, a row a method; the mean over
    numbers of clients, with the least and the greatest.

    Args:
        setting: its name.
        summary: its rows of the table of accuracies (:func:`feddep.reporting.main.accuracy`).
    """
    named = set(summary["method"])
    reference = REFERENCE if REFERENCE in named else summary["method"].iloc[0]
    baseline = summary[summary["method"] == reference]
    both = summary.merge(baseline, on="dataset", suffixes=("", "_of"))
    beside = both["clients"].isna() | (both["clients"] == both["clients_of"]).fillna(False)
    both = both[beside & (both["method"] != reference)]
    prefixes = {OURS: "", **{title: f"paper_{paper}_" for paper, title in papers().items()}}
    for source, prefix in prefixes.items():
        both[source] = both[f"{prefix}mean"] - both[f"{prefix}mean_of"]
    sources = [source for source in prefixes if both[source].notna().any()]
    panels = {
        dataset_title(str(dataset)): {
            method_title(str(name)): _gains(rows, sources)
            for name, rows in of.groupby("method", sort=False)
        }
        for dataset, of in both.groupby("dataset", sort=False)
    }
    gains = both.loc[both["clients"].notna(), sources].max()
    title = f"No model of clients is better than {method_title(reference)}'s"
    if (ours := gains.get(OURS, 0)) > 0:
        title = f"Over {method_title(reference)} we measure gains of at most {ours:.3f}"
    if (printed := gains.drop(OURS, errors="ignore").max()) > 0:
        title += f"; papers print up to {printed:.3f}"
    label = f"test accuracy less that of {method_title(reference)}: mean, least and greatest over M"
    return figures.forests(f"{title}\nSetting {setting}", panels, label)


def _gains(rows: pd.DataFrame, sources: Collection[str]) -> dict[str, dict[str, Any]]:
    """The gains of a method on a dataset, by source."""
    return {
        source if len(sources) > 1 else "": {
            "mean": rows[source].mean(),
            "low": rows[source].min(),
            "high": rows[source].max(),
            "method": None if source == OURS else source,
        }
        for source in sources
        if rows[source].notna().any()
    }


def curves(setting: str, rounds: pd.DataFrame) -> Figure:
    """Test accuracy after each round, mean over seeds and from minimum to maximum: a panel a
    dataset and number of clients.

    Args:
        setting: its name.
        rounds: its rows of :func:`feddep.reporting.load.curves`.
    """
    history = in_paper_order(load.over_seeds(rounds, ["test"]), ["dataset"])
    numbers = client_numbers(history)
    drawn = [
        (
            place_title(dataset, m),
            beside_clients(of_place(history, setting, dataset), m),
            "test",
            "test accuracy",
        )
        for _, dataset in places(history)
        for m in numbers
    ]
    return figures.histories(f"{load.settled(history)}\nTraining curves, setting {setting}", drawn)


def partitions(summary: pd.DataFrame) -> Figure:
    """Edges between clients, ours and the papers': a panel a dataset.

    Args:
        summary: as :func:`feddep.reporting.main.partitions` gives it.
    """
    panels: dict[str, list[dict]] = {}
    for row in records(summary):
        here = panels.setdefault(dataset_title(row["dataset"]), [])
        for source, prefix in {
            OURS: "",
            **{title: f"{paper}_" for paper, title in papers().items()},
        }.items():
            if (edges := row[f"{prefix}missing_edges"]) is not None:
                std = None if prefix else row["missing_edges_std"]
                here.append(
                    {
                        "clients": row["clients"],
                        "source": source,
                        "mean": edges,
                        "std": std,
                        "method": prefix and source,
                    }
                )
    shares = summary["missing_edges"] / summary["edges"]
    return figures.lines(
        f"{shares.min():.0%} to {shares.max():.0%} of the edges are between clients",
        panels,
        lambda row: row["clients"],
        lambda row: row["source"],
        labels=("number of clients M", "missing edges"),
        joined=False,
    )
