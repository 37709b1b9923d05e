"""The numbers that the papers print, shipped with the package (``published/README.md`` says where
each stands).

``clients`` is NA where a method sees the whole graph; accuracies are in [0, 1].
"""

from dataclasses import replace
from importlib import resources
from typing import Any

import pandas as pd

from feddep.config import variants
from feddep.config.loading import Config
from feddep.experiment import plan

OURS = "ours"
"""How tables call this project's numbers where a paper's stand beside them."""
PAPERS = {"feddep": "FedDEP paper", "fedsage": "FedSage paper"}
"""The papers whose numbers stand beside ours, and how tables call them."""
VESPER = "VESPER paper"
"""How tables call VESPER's, which stands beside studies of its own alone."""


def _read(name: str) -> pd.DataFrame:
    with (
        resources.files("feddep.reporting")
        .joinpath("published", name)
        .open(encoding="utf-8") as file
    ):
        return pd.read_csv(file, dtype={"clients": "Int64"})


def accuracy(table: str = "table2") -> pd.DataFrame:
    """Test accuracies of one published table: paper, dataset, clients, method, mean, std.

    Args:
        table: ``table2`` is the main table of both papers, ``appendix_table2`` that of FedSage's
            shared NeighGen.
    """
    numbers = _read("accuracy.csv")
    return numbers[numbers["table"] == table].drop(columns="table").reset_index(drop=True)


def field() -> pd.DataFrame:
    """What papers print in the field's setting: 10 clients by Louvain or METIS, 20/40/40, accuracy
    of clients' own test nodes.

    Returns:
        source, table, second_hand, dataset, partition, clients, method, encoder, local_epochs,
        evaluation, mean, std.
    """
    return _read("field.csv")


def every_accuracy() -> pd.DataFrame:
    """All test accuracies of FedDEP's and FedSage's tables, each with the run that it is of: paper,
    table, dataset, clients, setting and method, as variants name them
    (:mod:`feddep.config.variants`), mean, std.  A paper's training is the setting of its name.
    """
    numbers = _read("accuracy.csv")
    table, _, change = (numbers["table"].str.partition(":")[part] for part in range(3))
    setting = numbers["paper"].where(change == "", numbers["paper"] + "," + change)
    method = numbers["method"].str.replace(r"_c(\d+)$", r",prototypes=\1", regex=True)
    columns = ["paper", "table", "dataset", "clients", "setting", "method", "mean", "std"]
    return numbers.assign(table=table, setting=setting, method=method)[columns]


def runs_like(config: Config, numbers: pd.DataFrame) -> list[list[plan.Run]]:
    """For each number of :func:`every_accuracy` the planned runs that are like it, one a seed; none
    where there are none.
    """
    planned = set(plan.all_runs(config))
    like = [_like(config, dict(row)) for _, row in numbers.iterrows()]
    return [
        [run for seed in config["seeds"] if one and (run := replace(one, seed=seed)) in planned]
        for one in like
    ]


def _like(config: Config, row: dict[str, Any]) -> plan.Run | None:
    """A run that a published number is of, as the plan spells it; None where the configuration
    lacks an entry.
    """
    if (
        variants.base(row["setting"]) not in config["settings"]
        or row["dataset"] not in config["datasets"]
    ):
        return None
    clients = None if pd.isna(row["clients"]) else int(row["clients"])
    names = {part: row[part] for part in ("setting", "dataset", "method")}
    return plan.one_run(config, clients=clients, **names)


def planned_runs(config: Config) -> list[plan.Run]:
    """The runs of a configuration whose accuracy a paper prints, each once."""
    return list(
        dict.fromkeys(run for found in runs_like(config, every_accuracy()) for run in found)
    )


def sweep(option: str, part: str) -> pd.DataFrame:
    """What papers print of a sweep over an option of a ``method`` or ``setting``; no row where no
    paper has one.

    FedDEP's Table 3 is over its C, ``prototypes``; FedSage's Tables 3 and 4 of Appendix D.3 are
    over ``batch_size`` and ``local_epochs`` of the classifier's training.

    Returns:
        Columns paper, dataset, clients, method, value (NA for a method that has no such option),
        mean, std.
    """
    numbers = _read("accuracy.csv")
    if (option, part) == ("prototypes", "method"):
        numbers = numbers[numbers["table"] == "table3"].copy()
        numbers[["method", "value"]] = numbers["method"].str.extract(r"^(.+?)(?:_c(\d+))?$")
    else:
        value = numbers["table"].str.extract(rf"^appendix_table\d:{option}=(\d+)$", expand=False)
        numbers = numbers.assign(value=value)[value.notna() & (part == "setting")]
    numbers["value"] = pd.to_numeric(numbers["value"]).astype("Int64")
    return numbers[["paper", "dataset", "clients", "method", "value", "mean", "std"]].reset_index(
        drop=True
    )


def beside(
    ours: pd.DataFrame, theirs: pd.DataFrame, on: list[str], papers: list[str]
) -> pd.DataFrame:
    """A table with two more columns for each of the papers, such as ``paper_feddep_mean``; NaN
    where it has no such number.
    """
    for paper in papers:
        numbers = theirs.loc[theirs["paper"] == paper, [*on, "mean", "std"]]
        ours = ours.merge(
            numbers.rename(columns={name: f"paper_{paper}_{name}" for name in ("mean", "std")}),
            how="left",
            on=on,
        )
    return ours


def feature_distances() -> pd.DataFrame:
    """How far neighbourhoods are from the true ones (FedSage, Appendix D.1, Table 1): clients,
    dataset, neighbourhood (``local`` or ``mended``), mean, std (over nodes).
    """
    return _read("neighgen_feature_distance.csv").drop(columns=["paper", "table"])


def partitions() -> pd.DataFrame:
    """Statistics of the papers' graphs and partitions, as the columns of the file; edges are
    undirected.
    """
    return _read("partitions.csv")


def edge_ldp() -> pd.DataFrame:
    """The pairs of ε, of one sampling, and σ that FedDEP's Figure 5 compares at, as the columns of
    the file.
    """
    return _read("edge_ldp.csv").drop(columns=["paper", "figure"])


def vesper() -> pd.DataFrame:
    """Accuracies of VESPER's Table 3, of its Finance graph areas under the ROC curve: dataset,
    method, decoder (``concat`` or ``gru``; NA where the paper names none), epsilon (∞ without
    privacy), mean, std.
    """
    numbers = _read("vesper.csv")
    names = numbers["method"].str.extract(r"^(?P<method>.+?)(?:_(?P<decoder>concat|gru))?$")
    without_noise = names["method"].isin(["mlp", "gin", "gcn"])
    return names.assign(
        dataset=numbers["dataset"].str.replace("-", "_"),
        method=names["method"].mask(without_noise, "vertical_" + names["method"]),
        epsilon=numbers["epsilon"].astype(float),
        mean=numbers["mean_percent"] / 100,
        std=numbers["std"] / 100,
    )
