"""The main tables: every method on every dataset, beside the papers' numbers, with comparisons,
costs and partitions.
"""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.config.loading import Config
from feddep.experiment import data_tables, plan, runs
from feddep.reporting import (
    load,
    main_figures,
    main_page,
    published,
    statistics,
)
from feddep.reporting.frames import CELL, in_paper_order
from feddep.reporting.labels import assumptions
from feddep.reporting.statistics import REFERENCE

ACCURACY = [
    *(
        "dataset",
        "clients",
        "method",
        "assumes",
        "setting",
        "seeds",
        "mean",
        "std",
        "last_mean",
        "last_std",
        "validation_mean",
    ),
    *(f"local_{when}_{statistic}" for when in ("before", "after") for statistic in ("mean", "std")),
    "client_std",
]
EFFORT = ["rounds", "best_round_mean", *statistics.FLAWS, "bytes"]
COMPARISONS = [
    *("dataset", "clients", "method", "setting", "reference"),
    *(
        "seeds",
        "mean_difference",
        "std_difference",
        "low",
        "high",
        "p",
        *statistics.JUDGED,
        *statistics.FLAWS,
    ),
]
EFFECTS = [
    "setting",
    "dataset",
    "clients",
    "method",
    "reference",
    "seeds",
    "mean_difference",
    "low",
    "high",
    "d_z",
    "g_z",
    *statistics.FLAWS,
]
STAGES = ("pretrain", "prototypes", "generator")
"""The stages that a method may have before its classifier is trained."""
_OF_TRAINING = ("model", "training", "validation")
"""Kinds of messages that every federated method sends: the classifier's weights, and what clients
report of it.
"""
GRAPH = ["nodes", "edges", "features", "classes"]
PARTITION = ["mean_client_nodes", "mean_client_edges", "missing_edges"]


def contents(config: Config, files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """All that is made of the runs of the main tables, by file name, for
    :func:`feddep.reporting.output.write`.

    Args:
        config: the configuration.
        files: statistics of graphs and partitions by key, where no table has them.

    Raises:
        DataError: if a run has not been trained, a partition not been made, or a file is damaged.
    """
    planned = plan.runs(config)
    recorded = runs.load(config, planned)
    table = load.tidy(recorded)
    tables = {
        "accuracy": accuracy(table),
        "comparisons": comparisons(table, config["margin"]),
        "costs": costs(recorded),
        "partitions": partitions(statistics_of_partitions(config, files or {})),
    }
    tables["graphs"] = pd.concat(
        statistics.on_graphs(
            tables["comparisons"].query("setting == @name"), config["margin"]
        ).assign(setting=name)
        for name in dict.fromkeys(tables["accuracy"]["setting"])
    )
    history = load.curves(config, planned, table)
    figures: dict[str, Figure] = {"partitions": main_figures.partitions(tables["partitions"])}
    for name in dict.fromkeys(tables["accuracy"]["setting"]):
        figures[f"accuracy_{name}"] = main_figures.accuracy(
            name, tables["accuracy"].query("setting == @name")
        )
        figures[f"curves_{name}"] = main_figures.curves(name, history[history["setting"] == name])
    csv = tables | {
        "comparisons": tables["comparisons"][COMPARISONS],
        "effects": tables["comparisons"][EFFECTS],
    }
    found = {name: str(figure.get_label()) for name, figure in figures.items()}
    page = main_page.markdown(tables, found) + "\n" + load.provenance(recorded, config["margin"])
    return {
        **{f"{name}.csv": each for name, each in csv.items()},
        "page.md": page,
        **figures,
    }


def accuracy(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy over seeds, one row a setting, dataset, method and number of clients, in the papers'
    order: the columns :data:`ACCURACY`, the papers' and :data:`EFFORT`, see
    :func:`feddep.reporting.statistics.summarise`; assumes:
    what the method assumes beyond FedAvg; paper_*: the papers' main tables (NaN where they have no
    such number).
    """
    summary = statistics.summarise(table, list(CELL)).rename(columns={"trained_rounds": "rounds"})
    summary["assumes"] = summary["method"].map(assumptions)
    beside = published.beside(summary, published.main_tables(), ["dataset", "method", "clients"])
    papers = [name for name in beside if name not in summary]
    return in_paper_order(beside)[[*ACCURACY, *papers, *EFFORT]]


def comparisons(table: pd.DataFrame, margin: Mapping[str, Any]) -> pd.DataFrame:
    """Each method against FedAvg, a setting at a time
    (:func:`feddep.reporting.statistics.compare`).
    """
    found = pd.concat(
        statistics.compare(of[of["method"] != REFERENCE], of[of["method"] == REFERENCE], margin)
        for _, of in table.groupby("setting", sort=False)
    )
    return in_paper_order(found.assign(reference=REFERENCE))


def costs(recorded: pd.DataFrame) -> pd.DataFrame:
    """Cost of each row, means over seeds: bytes, and bytes_beside, of
    messages other than the classifier's; seconds of training the classifier, and of each of
    :data:`STAGES` such as seconds_generator, NaN where a method has no such stage.
    """
    sent, before = (
        list(map(json.loads, recorded[name])) for name in ("bytes_by_kind", "seconds_before")
    )
    table = recorded[[*CELL, "bytes", "seconds"]].assign(
        assumes=recorded["method"].map(assumptions),
        bytes_beside=[
            sum(size for kind, size in kinds.items() if kind not in _OF_TRAINING) for kinds in sent
        ],
        **{f"seconds_{stage}": [seconds.get(stage) for seconds in before] for stage in STAGES},
    )
    stages = {f"seconds_{stage}": "float64" for stage in STAGES}
    groups = table.astype(stages).groupby([*CELL, "assumes"], sort=False, dropna=False)
    summary = groups.mean().assign(seeds=groups.size()).reset_index()
    summary[["bytes", "bytes_beside"]] = (
        summary[["bytes", "bytes_beside"]].astype("float64").round().astype("int64")
    )
    columns = [
        "setting",
        "dataset",
        "clients",
        "method",
        "seeds",
        "assumes",
        "bytes",
        "bytes_beside",
        "seconds",
        *stages,
    ]
    return in_paper_order(summary)[columns]


def statistics_of_partitions(config: Config, files: Mapping[str, str]) -> pd.DataFrame:
    """The statistics of every graph and partition of the main tables, one row a partition.

    Raises:
        DataError: if one is neither in the tables nor among the files.
    """
    graph_keys = {key: name for name, key in plan.graphs(config).items()}
    divided = plan.partitions(config)
    graphs = pd.DataFrame(
        data_tables.load(config, "graphs", {key: files.get(key, "") for key in graph_keys})
    )
    partition_keys = [run.partition_key for run in divided]
    rows = data_tables.load(
        config, "partitions", {key: files.get(key, "") for key in partition_keys}
    )
    # Also where no method is partitioned.
    found = pd.DataFrame(rows, columns=["clients", "seed", *PARTITION, "cut_nodes"])
    found["dataset"] = [run.dataset.name for run in divided]
    graphs["dataset"] = list(graph_keys.values())
    columns = ["dataset", *GRAPH, "clients", "seed", *PARTITION, "cut_nodes"]
    return in_paper_order(
        found.merge(graphs[["dataset", *GRAPH]], on="dataset"), ["dataset", "clients", "seed"]
    )[columns]


def partitions(found: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds of each statistic, in the papers' order: missing_edges are those between
    different clients, and missing_edges_std their sample standard deviation; PAPER_* are a paper's
    (NaN where it has no such graph).
    """
    over_seeds = found.groupby(["dataset", *GRAPH, "clients"], sort=False, as_index=False)
    summary = over_seeds.agg(
        seeds=("seed", "count"),
        **{name: (name, "mean") for name in PARTITION},
        missing_edges_std=("missing_edges", "std"),
        cut_nodes=("cut_nodes", "mean"),
    )
    numbers = published.read("partitions")
    columns = ["nodes", "edges", *PARTITION]
    for paper in dict.fromkeys(numbers["paper"]):
        theirs = numbers.loc[numbers["paper"] == paper, ["dataset", "clients", *columns]].astype(
            {"clients": "int64"}
        )
        theirs = theirs.rename(columns={name: f"{paper}_{name}" for name in columns})
        summary = summary.merge(theirs, how="left", on=["dataset", "clients"])
    return in_paper_order(summary, ["dataset"])
