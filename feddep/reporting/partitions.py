"""How the graphs were divided: our partitions over seeds, beside the papers'."""

from typing import Any

import pandas as pd

from feddep.config.loading import Config
from feddep.experiment import plan, records
from feddep.experiment.file_schemas import GraphStatistics, PartitionStatistics
from feddep.reporting import markdown as md
from feddep.reporting import published
from feddep.reporting.frames import records as rows_of
from feddep.reporting.labels import dataset_title, sort_datasets
from feddep.reporting.main_table import OURS
from feddep.utils.schemas import Schema, check

GRAPH = ["nodes", "edges", "features", "classes"]
PARTITION = ["mean_client_nodes", "mean_client_edges", "missing_edges"]
COLUMNS = [
    *("dataset", *GRAPH, "clients", "seeds", *PARTITION, "missing_edges_std", "cut_nodes"),
    *(f"{paper}_{column}" for paper in published.PAPERS for column in ["nodes", "edges", *PARTITION]),
]

_NOTES = """\
Edges are undirected. *Missing edges* join nodes of different clients, so that no client knows them; *share* is their part of
all edges. *ours*: mean over seeds, ± sample standard deviation.
"""


def load(config: Config) -> pd.DataFrame:
    """Read the statistics of every graph and partition of the configuration, one row a partition.

    Returns:
        dataset, nodes, edges, features, classes, clients, seed, mean_client_nodes, mean_client_edges, missing_edges, cut_nodes.

    Raises:
        DataError: if a file is missing or has not these statistics.
    """
    specs = sorted(plan.partitions(config), key=lambda spec: (spec.clients, spec.seed))
    rows = []
    for dataset in sort_datasets(plan.datasets(config)):
        graph = _read(records.of_graph(config, dataset), GRAPH, GraphStatistics)
        for spec in (spec for spec in specs if spec.dataset == dataset):
            partition = _read(records.of_partition(config, spec), [*PARTITION, "cut_nodes"], PartitionStatistics)
            rows.append({"dataset": dataset, **graph, "clients": spec.clients, "seed": spec.seed, **partition})
    return pd.DataFrame(rows, columns=["dataset", *GRAPH, "clients", "seed", *PARTITION, "cut_nodes"])


def _read(artifact: records.Artifact, keys: list[str], schema: type[Schema]) -> dict[str, Any]:
    statistics = artifact.statistics()
    check(artifact.source, "such statistics", schema, statistics)
    return {key: statistics[key] for key in keys}


def summarise(partitions: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds of each statistic, beside the papers'.

    Returns:
        The columns :data:`COLUMNS`, rows by dataset in the papers' order and number of clients.  missing_edges counts edges
        between different clients; missing_edges_std is its sample standard deviation over seeds; cut_nodes: see
        :func:`feddep.graph.partition.assign_communities`; feddep_* and fedsage_* are the papers' (NaN where they have none).
    """
    over_seeds = partitions.groupby(["dataset", *GRAPH, "clients"], sort=False, as_index=False)
    summary = over_seeds.agg(
        seeds=("seed", "count"),
        mean_client_nodes=("mean_client_nodes", "mean"),
        mean_client_edges=("mean_client_edges", "mean"),
        missing_edges=("missing_edges", "mean"),
        missing_edges_std=("missing_edges", "std"),
        cut_nodes=("cut_nodes", "mean"),
    )
    numbers = published.partitions()
    for paper in published.PAPERS:
        theirs = numbers[numbers["paper"] == paper][["dataset", "clients", "nodes", "edges", *PARTITION]]
        theirs = theirs.rename(columns={column: f"{paper}_{column}" for column in ["nodes", "edges", *PARTITION]})
        summary = summary.merge(theirs.astype({"clients": "int64"}), how="left", on=["dataset", "clients"])
    return summary[COLUMNS]


def markdown(summary: pd.DataFrame) -> str:
    """A page with a table, ours beside the papers'.

    Args:
        summary: as :func:`summarise` gives it.
    """
    header = ["dataset", "M", "", "nodes", "edges", "nodes a client", "edges a client", "missing edges", "share"]
    lines = []
    for row in rows_of(summary):
        spread = "" if row["missing_edges_std"] is None else f" ± {row['missing_edges_std']:.1f}"
        lines.append([dataset_title(row["dataset"]), str(row["clients"]), OURS, *_sizes(row, "", spread)])
        for paper, source in published.PAPERS.items():
            if row[f"{paper}_edges"] is not None:
                lines.append(["", "", source, *_sizes(row, f"{paper}_")])
    return f"# Partitions\n\n{_NOTES}\n{md.table(header, lines)}"


def _sizes(row: dict[str, Any], prefix: str, spread: str = "") -> list[str]:
    *sizes, missing = [f"{row[prefix + column]:.0f}" for column in ("nodes", "edges", *PARTITION)]
    share = row[f"{prefix}missing_edges"] / row[f"{prefix}edges"] if row[f"{prefix}edges"] else 0.0
    return [*sizes, missing + spread, f"{share:.1%}"]
