"""Kind ``headroom``: what does FedAvg lose to Global, and how much of it could neighbours across borders win back?

With R the setting's rounds, or where no run has these the rounds that most methods have, each cell (setting, dataset, M) asks
for runs of

* ``global`` at R rounds, and at R / M rounds: as many sequential steps as FedAvg takes, whose clients work side by side;
* ``halo``: FedAvg whose clients know the true neighbours across their borders;
* ``fedavg`` at R rounds, and at R · M rounds: as many sequential steps as Global takes;
* ``feddep``, if it is to be seen beside them.

What is missing leaves its columns empty.
"""

from itertools import chain, product

import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.reporting import comparisons, drawing
from feddep.reporting import markdown as md
from feddep.reporting.frames import beside_clients, client_numbers, of_place, records
from feddep.reporting.labels import place_title, sort_datasets
from feddep.reporting.study_data import Study, without
from feddep.reporting.undertrained import mark
from feddep.utils.errors import DataError

SHOWS = """\
Test accuracy at the round that is best on validation nodes. The gap Global − FedAvg is split into *missing neighbours*, halo −
FedAvg, where halo is FedAvg whose clients know their true neighbours across the borders, and *optimisation*, Global − halo.
In R rounds with M clients FedAvg takes as many steps one after the other as Global does in R / M rounds. What fewer steps cost
is measured on both sides: FedAvg with M · R rounds less FedAvg, and Global less Global with R / M rounds.
Differences are paired by seed; brackets: 95 % t-interval of the mean, left out with fewer than three pairs.
"""
INGREDIENTS = {
    "global": "Global",
    "global_fewer": "Global, R/M rounds",
    "halo": "halo",
    "fedavg": "FedAvg",
    "fedavg_longer": "FedAvg, M·R rounds",
    "feddep": "FedDEP",
}
DIFFERENCES = {
    "gap": ("global", "fedavg", "gap: Global − FedAvg"),
    "neighbours": ("halo", "fedavg", "missing neighbours: halo − FedAvg"),
    "optimisation": ("global", "halo", "optimisation: Global − halo"),
    "steps_fedavg": ("fedavg_longer", "fedavg", "fewer steps, FedAvg: M·R rounds − R rounds"),
    "steps_global": ("global", "global_fewer", "fewer steps, Global: R rounds − R/M rounds"),
    "feddep_gain": ("feddep", "fedavg", "FedDEP − FedAvg"),
}

PARTS = ("mean", "low", "high")
"""What a difference is written as."""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """A row a cell.

    Returns:
        setting, dataset, clients and rounds R; for each of :data:`INGREDIENTS` its mean and sample standard deviation over
        seeds, such as ``halo_mean`` and ``halo_std``; for each of :data:`DIFFERENCES` the number of pairs, their mean and
        its 95 % t-interval, such as ``gap_seeds``, ``gap_mean``, ``gap_low`` and ``gap_high``; for both the share of undertrained
        runs, such as ``halo_undertrained``.
        Of several variants of FedDEP the first in the plan is taken.

    Raises:
        DataError: if no run has a number of clients.
    """
    runs = study.runs.assign(setting=[without(spelled, ["rounds"]) for spelled in study.runs["setting"]])
    runs["name"] = [variants.base(spelled) for spelled in runs["method"]]
    runs["usual"] = runs["setting"] == study.runs["setting"]
    for _, of_setting in runs.groupby("setting"):
        if not of_setting["usual"].any():
            methods = of_setting.groupby("trained_rounds")["name"].nunique()
            runs.loc[of_setting.index, "usual"] = of_setting["trained_rounds"] == methods.idxmax()
    settings, datasets = dict.fromkeys(runs["setting"]), sort_datasets(runs["dataset"])
    rows = []
    for setting, dataset, m in product(settings, datasets, client_numbers(runs)):
        here = of_place(runs, setting, dataset)
        if m is not None and (here["clients"] == m).any():
            rows.append(_cell(setting, dataset, m, here))
    if not rows:
        raise DataError(f"no run of the study {study.name} is on clients' subgraphs; a headroom study needs at least fedavg")
    return {"table": pd.DataFrame(rows)}


def _cell(setting: str, dataset: str, clients: int, runs: pd.DataFrame) -> dict[str, object]:
    found = _ingredients(clients, runs)
    usual = runs.loc[runs["usual"], "trained_rounds"]
    row: dict[str, object] = {"setting": setting, "dataset": dataset, "clients": clients}
    row["rounds"] = int(usual.iloc[0]) if len(usual) else None
    for name, those in found.items():
        row |= {f"{name}_mean": those["best"].mean(), f"{name}_std": those["best"].std(ddof=1)}
        row[f"{name}_undertrained"] = those["undertrained"].mean()
    for name, (more, less, _) in DIFFERENCES.items():
        test = comparisons.difference(found[more], found[less])
        row |= {f"{name}_seeds": test["seeds"], f"{name}_mean": test["mean_difference"]}
        row |= {f"{name}_{end}": test[end] for end in ("low", "high", "undertrained")}
    return row


def _ingredients(clients: int, runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The runs of each of :data:`INGREDIENTS`; of one that is not there no row."""
    here = beside_clients(runs, clients)
    usual, others = here[here["usual"]], here[~here["usual"]]
    rounds = usual["trained_rounds"].max()  # one and the same; NaN where there is none

    def of(those: pd.DataFrame, name: str) -> pd.DataFrame:
        return those[those["name"] == name]

    fewer = of(others, "global")
    # R / M rounds, or where that is no whole number the nearest that was run, less than one round away.
    away = (fewer["trained_rounds"] * clients - rounds).abs()
    feddep = of(usual, "feddep")
    return {
        "global": of(usual, "global"),
        "global_fewer": fewer[(away < clients) & (away == away.min())],
        "halo": of(usual, "halo"),
        "fedavg": of(usual, "fedavg"),
        "fedavg_longer": of(others[others["trained_rounds"] == rounds * clients], "fedavg"),
        "feddep": feddep[feddep["method"] == feddep["method"].iloc[0]] if len(feddep) else feddep,
    }


def _present(table: pd.DataFrame, names: dict) -> list[str]:
    return [name for name in names if table[f"{name}_mean"].notna().any()]


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """Accuracies, then differences; a line a cell."""
    table = tables["table"]
    several = table["setting"].nunique() > 1
    accuracies, gaps = _present(table, INGREDIENTS), _present(table, DIFFERENCES)
    levels, parts = [], []
    for line in records(table):
        cell = _cell_title(line, several)
        late = {name: mark(line[f"{name}_undertrained"]) for name in (*accuracies, *gaps)}
        levels.append([cell, *(md.plus_minus(line[f"{name}_mean"], line[f"{name}_std"]) + late[name] for name in accuracies)])
        parts.append([cell, *(md.interval(*(line[f"{name}_{part}"] for part in PARTS)) + late[name] for name in gaps)])
    rounds = ", ".join(f"{md.value(value)}" for value in sorted(set(table["rounds"].dropna())))
    return (
        f"R = {rounds}.\n\n## Accuracy\n\n{md.table(['', *(INGREDIENTS[name] for name in accuracies)], levels)}\n"
        f"## Differences\n\n{md.table(['', *(DIFFERENCES[name][2] for name in gaps)], parts)}"
    )


def _cell_title(line: dict, with_setting: bool) -> str:
    place = place_title(line["dataset"], line["clients"])
    return f"{place}, {line['setting']}" if with_setting else place


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A row a cell; the differences beside one another, each with its interval."""
    table = tables["table"]
    lines = records(table)
    rows = [_cell_title(line, bool(table.duplicated(["dataset", "clients"]).any())) for line in lines]
    names = _present(table, DIFFERENCES)
    colours = dict(zip(DIFFERENCES, ("#000000", *drawing.COLOURS), strict=False))
    parts = {"mean_difference": "mean", "low": "low", "high": "high", "undertrained": "undertrained"}
    series = {name: [{key: line[f"{name}_{part}"] for key, part in parts.items()} for line in lines] for name in names}
    with drawing.style():
        drawn = drawing.forests(rows, series, colours, "difference of test accuracy, mean and 95 % interval")
        handles = [drawing.sample(DIFFERENCES[name][2], color=colours[name], marker="o", linestyle="none") for name in names]
        handles += drawing.undertrained_sample(chain(*series.values()))
        drawing.head(drawn, study.title, handles, columns=3)
    return drawn
