"""The numbers that the papers print, shipped with the package (``published/README.md`` says where each stands)."""

from importlib import resources

import pandas as pd

PAPERS = {"feddep": "FedDEP paper", "fedsage": "FedSage paper"}
"""The papers whose numbers stand beside ours, and how tables call them."""
VESPER = "VESPER paper"
"""How tables call VESPER's, which stands beside studies of its own alone."""


def _read(name: str) -> pd.DataFrame:
    with resources.files("feddep.reporting").joinpath("published", name).open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype={"clients": "Int64"})


def accuracy(table: str = "table2") -> pd.DataFrame:
    """Test accuracies of one published table, in [0, 1].

    Args:
        table: ``table2`` is the main table of both papers, ``appendix_table2`` that of FedSage's shared NeighGen.

    Returns:
        Columns paper, dataset, clients (NA where the method sees the whole graph), method, mean, std.
    """
    numbers = _read("accuracy.csv")
    return numbers[numbers["table"] == table].drop(columns="table").reset_index(drop=True)


def every_accuracy() -> pd.DataFrame:
    """All test accuracies of FedDEP's and FedSage's tables, in [0, 1], each with the run that it is of.

    Returns:
        Columns paper, table (``table2``, ``table3``, ``appendix_table2`` …), dataset, clients (NA where the method sees the
        whole graph), setting and method, as variants name them (:mod:`feddep.config.variants`), mean, std.  A paper's
        training is the setting of its name.
    """
    numbers = _read("accuracy.csv")
    table, _, change = (numbers["table"].str.partition(":")[part] for part in range(3))
    setting = numbers["paper"].where(change == "", numbers["paper"] + "," + change)
    method = numbers["method"].str.replace(r"_c(\d+)$", r",prototypes=\1", regex=True)
    columns = ["paper", "table", "dataset", "clients", "setting", "method", "mean", "std"]
    return numbers.assign(table=table, setting=setting, method=method)[columns]


def renamed(numbers: pd.DataFrame, paper: str) -> pd.DataFrame:
    """A paper's numbers under the names that tables have them under: ``paper_feddep_mean`` and ``paper_feddep_std``."""
    names = {statistic: f"paper_{paper}_{statistic}" for statistic in ("mean", "std")}
    return numbers.drop(columns="paper", errors="ignore").rename(columns=names)


def sweep(option: str, part: str) -> pd.DataFrame:
    """Test accuracies that a paper prints over the values of an option.

    FedDEP's Table 3 is over its C, ``prototypes``; FedSage's Tables 3 and 4 of Appendix D.3 are over ``batch_size`` and
    ``local_epochs`` of the classifier's training.

    Args:
        option: name of the option.
        part: whose option it is, ``method`` or ``setting``.

    Returns:
        Columns paper, dataset, clients, method, value (NA for a method that has no such option), mean, std.  No row where
        no paper has such a table.
    """
    numbers = _read("accuracy.csv")
    if (option, part) == ("prototypes", "method"):
        numbers = numbers[numbers["table"] == "table3"].copy()
        numbers[["method", "value"]] = numbers["method"].str.extract(r"^(.+?)(?:_c(\d+))?$")
    else:
        value = numbers["table"].str.extract(rf"^appendix_table\d:{option}=(\d+)$", expand=False)
        numbers = numbers.assign(value=value)[value.notna() & (part == "setting")]
    numbers["value"] = pd.to_numeric(numbers["value"]).astype("Int64")
    return numbers[["paper", "dataset", "clients", "method", "value", "mean", "std"]].reset_index(drop=True)


def feature_distances() -> pd.DataFrame:
    """How far neighbourhoods are from the true ones, with NeighGen and without (FedSage, Appendix D.1, Table 1).

    Returns:
        Columns clients, dataset, neighbourhood (``local`` or ``mended``), mean, std (over nodes).
    """
    return _read("neighgen_feature_distance.csv").drop(columns=["paper", "table"])


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


def vesper() -> pd.DataFrame:
    """Test accuracies of VESPER's Table 3, in [0, 1]; of its Finance graph they are areas under the ROC curve.

    Returns:
        Columns dataset, method, decoder (``concat`` or ``gru``; NA where the paper names none), epsilon (∞ without privacy),
        mean, std.
    """
    numbers = _read("vesper.csv")
    names = numbers["method"].str.extract(r"^(?P<method>.+?)(?:_(?P<decoder>concat|gru))?$")
    without_noise = names["method"].isin(["mlp", "gin", "gcn"])
    return pd.DataFrame(
        {
            "dataset": numbers["dataset"].str.replace("-", "_"),
            "method": names["method"].mask(without_noise, "vertical_" + names["method"]),
            "decoder": names["decoder"],
            "epsilon": numbers["epsilon"].astype(float),
            "mean": numbers["mean_percent"] / 100,
            "std": numbers["std"] / 100,
        }
    )
