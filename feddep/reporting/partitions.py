"""How the graphs were divided: our partitions over seeds, beside the papers'."""

from typing import Any

import pandas as pd

from feddep import plan, records
from feddep.config import Config
from feddep.errors import DataError
from feddep.reporting import published
from feddep.reporting.labels import sort_datasets

GRAPH = ["nodes", "edges", "features", "classes"]
PARTITION = ["mean_client_nodes", "mean_client_edges", "missing_edges"]
COLUMNS = [
    "dataset",
    *GRAPH,
    "clients",
    "seeds",
    *PARTITION,
    "missing_edges_std",
    "cut_nodes",
    *(f"{paper}_{column}" for paper in published.PAPERS for column in ["nodes", "edges", *PARTITION]),
]


def load(config: Config) -> pd.DataFrame:
    """Read the statistics of every graph and partition of the configuration, one row a partition.

    Returns:
        dataset, nodes, edges, features, classes, clients, seed, mean_client_nodes, mean_client_edges, missing_edges, cut_nodes.

    Raises:
        DataError: if a file is missing or has not these statistics.
    """
    cuts = sorted(plan.cuts(config), key=lambda cut: (cut.clients, cut.seed))
    rows = []
    for dataset in sort_datasets(config["datasets"]):
        graph = _read(records.of_graph(config, dataset), GRAPH)
        for cut in (cut for cut in cuts if cut.dataset == dataset):
            partition = _read(records.of_partition(config, cut), [*PARTITION, "cut_nodes"])
            rows.append({"dataset": dataset, **graph, "clients": cut.clients, "seed": cut.seed, **partition})
    return pd.DataFrame(rows, columns=["dataset", *GRAPH, "clients", "seed", *PARTITION, "cut_nodes"])


def _read(artefact: records.Artefact, keys: list[str]) -> dict[str, Any]:
    statistics = artefact.statistics()
    missing = [key for key in keys if key not in statistics]
    if missing:
        raise DataError(f"{artefact.source} lacks {', '.join(missing)}; delete it and run `snakemake` to make it again")
    return {key: statistics[key] for key in keys}


def summarise(partitions: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds of each statistic, beside the papers'.

    Returns:
        The columns :data:`COLUMNS`, rows by dataset in the papers' order and number of clients.  missing_edges counts edges
        between different clients; missing_edges_std is its sample standard deviation over seeds; cut_nodes: see
        :func:`feddep.partition.deal`; feddep_* and fedsage_* are the papers' (NaN where they have no such graph).
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
