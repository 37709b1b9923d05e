"""Figures of the main tables: accuracy and training curves of a setting, partitions."""

import numpy as np
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
    """Ours against the papers', mean ± standard deviation: a panel a dataset and number of clients,
    a row a method.

    Args:
        setting: its name.
        summary: its rows of the table of accuracies (:func:`feddep.reporting.main.accuracy`).
    """
    panels, rules, numbers = {}, {}, client_numbers(summary)
    for dataset in dict.fromkeys(summary["dataset"]):
        for m in numbers:
            rows, panel = (
                records(beside_clients(of_place(summary, setting, dataset), m)),
                place_title(dataset, m),
            )
            panels[panel] = {method_title(row["method"]): _points(row) for row in rows}
            rules[panel] = next((row["mean"] for row in rows if row["method"] == REFERENCE), np.nan)
    label = "test accuracy, mean ± standard deviation (dotted: our FedAvg)"
    apart = [summary["mean"] - summary[f"paper_{paper}_mean"] for paper in papers()]
    if apart:
        title = (
            f"Median distance from the papers' accuracies: {pd.concat(apart).abs().median():.3f}"
        )
        title += f"\nSetting {setting}; beside the papers': {OURS}"
    else:
        title = f"Test accuracy\nSetting {setting}"
    return figures.forests(title, panels, label, rules=rules)


def _points(row: dict) -> dict[str, dict]:
    points = {}
    for source, prefix in {
        "": "",
        **{title: f"paper_{paper}_" for paper, title in papers().items()},
    }.items():
        mean, std = row[f"{prefix}mean"], row[f"{prefix}std"] or 0.0
        ends = {} if mean is None else {"low": mean - std, "high": mean + std}
        points[source] = {"mean": mean, "method": source or row["method"], **ends}
    return points


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
    return figures.histories(f"Training curves, setting {setting}", drawn)


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
    return figures.lines(
        "Edges between clients",
        panels,
        lambda row: row["clients"],
        lambda row: row["source"],
        labels=("number of clients M", "missing edges"),
        joined=False,
    )
