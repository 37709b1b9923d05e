"""The numbers that the papers print, shipped with the package (``published/README.md`` says where each stands)."""

from importlib import resources

import pandas as pd

PAPERS = {"feddep": "FedDEP paper", "fedsage": "FedSage paper"}
"""The papers whose numbers stand beside ours, and how tables call them."""


def _read(name: str) -> pd.DataFrame:
    with resources.files("feddep.reporting").joinpath("published", name).open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype={"clients": "Int64"})


def accuracy(table: str = "table2") -> pd.DataFrame:
    """Test accuracies of one published table, in [0, 1].

    Args:
        table: ``table2`` is the main table of both papers.

    Returns:
        Columns paper, dataset, clients (NA where the framework sees the whole graph), framework, mean, std.
    """
    numbers = _read("accuracy.csv")
    return numbers[numbers["table"] == table].drop(columns="table").reset_index(drop=True)


def partitions() -> pd.DataFrame:
    """Statistics of the papers' partitions; edges are undirected.

    Returns:
        Columns paper, dataset, nodes, edges, features, classes, clients, mean_client_nodes, mean_client_edges, missing_edges.
    """
    return _read("partitions.csv")


def edge_ldp() -> pd.DataFrame:
    """The pairs of ε and σ that FedDEP's Figure 5 compares at.

    Returns:
        Columns dataset, clients, sampling_size_d, min_degree_D, epsilon (of one sampling), dpsgd_sigma.
    """
    return _read("edge_ldp.csv").drop(columns=["paper", "figure"])
