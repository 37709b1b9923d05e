"""Kind ``headroom``: what does FedAvg lose to Global, and how much of it could neighbours across
borders recover?

With R the setting's rounds, or where no run has these the rounds that most methods have, each cell
(setting, dataset, M) asks for runs of ``global`` at R and at R / M rounds, of ``fedavg`` at R and
at R · M, of the oracle, and of ``feddep`` if it is to be seen beside them.  What is missing leaves
its columns empty.
"""

from itertools import product
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.reporting import figures, statistics
from feddep.reporting import markdown as md
from feddep.reporting.frames import beside_clients, client_numbers, of_place, records
from feddep.reporting.labels import place_title, sort_datasets, without
from feddep.reporting.load import Study
from feddep.reporting.statistics import BOUND, FLAWS
from feddep.utils.errors import DataError

SHOWS = """\
Test accuracy at the round that is best on validation nodes. The *gap* Global − FedAvg
is split into missing *neighbours*, oracle − FedAvg, where the oracle is FedAvg whose clients know
their true neighbours across the borders, and *optimisation*, Global − oracle. In R rounds with M
clients FedAvg takes as many steps one after the other as Global does in R / M rounds. What fewer
*steps* cost is measured on both sides: FedAvg with M · R rounds (*longer*) less FedAvg, and Global
less Global with R / M rounds (*fewer*). Differences are paired by seed; brackets: 95 % t-interval
of the mean over seeds, left out with fewer than three pairs.
"""
INGREDIENTS = ("global", "global_fewer", "oracle", "fedavg", "fedavg_longer", "feddep")
DIFFERENCES = {
    "gap": ("global", "fedavg", "gap: Global − FedAvg"),
    "neighbours": ("oracle", "fedavg", "missing neighbours: oracle − FedAvg"),
    "optimisation": ("global", "oracle", "optimisation: Global − oracle"),
    "steps_fedavg": ("fedavg_longer", "fedavg", "fewer steps, FedAvg: M·R rounds − R rounds"),
    "steps_global": ("global", "global_fewer", "fewer steps, Global: R rounds − R/M rounds"),
    "feddep_gain": ("feddep", "fedavg", "FedDEP − FedAvg"),
}

_COSTS = {"gap": "to Global", "neighbours": "for lack of neighbours"}


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """A row a cell.

    Returns:
        setting, dataset, clients and rounds R; for each of :data:`INGREDIENTS` its mean, sample
        standard deviation and shares of unfinished and stalled runs, such as ``oracle_std``; for
        each of :data:`DIFFERENCES` the number of pairs, their mean, its 95 % t-interval, and the
        same shares, such as ``gap_low``. Of several variants of FedDEP the first in the plan is
        taken.

    Raises:
        DataError: if no run has a number of clients.
    """
    runs = study.runs.assign(
        setting=[without(spelled, ["rounds"]) for spelled in study.runs["setting"]],
        name=study.runs["method"].map(variants.base),
    )
    runs["usual"] = runs["setting"] == study.runs["setting"]
    for _, of_setting in runs.groupby("setting"):
        if not of_setting["usual"].any():
            methods = of_setting.groupby("trained_rounds")["name"].nunique()
            runs.loc[of_setting.index, "usual"] = of_setting["trained_rounds"] == methods.idxmax()
    rows = []
    for setting, dataset in product(dict.fromkeys(runs["setting"]), sort_datasets(runs["dataset"])):
        here = of_place(runs, setting, dataset)
        for m in client_numbers(here):
            if m is not None:
                rows.append(
                    {
                        "setting": setting,
                        "dataset": dataset,
                        "clients": m,
                        **_cell(m, beside_clients(here, m), study),
                    }
                )
    if not rows:
        raise DataError(
            f"no run of the study {study.name} is on clients' subgraphs; a headroom study needs "
            "at least fedavg"
        )
    return {"table": pd.DataFrame(rows)}


def _cell(clients: int, runs: pd.DataFrame, study: Study) -> dict[str, Any]:
    usual, others = runs[runs["usual"]], runs[~runs["usual"]]
    rounds = usual["trained_rounds"].max()  # one and the same; NaN where there is none
    found = {name: usual[usual["name"] == method] for name, method in _AT_R_ROUNDS.items()}
    found["feddep"] = found["feddep"][found["feddep"]["method"].isin(found["feddep"]["method"][:1])]
    # R / M rounds, or where that is no whole number the nearest that was run, less than one round
    # away.
    fewer = others[others["name"] == "global"]
    away = (fewer["trained_rounds"] * clients - rounds).abs()
    found["global_fewer"] = fewer[(away < clients) & (away == away.min())]
    found["fedavg_longer"] = others[
        (others["name"] == "fedavg") & (others["trained_rounds"] == rounds * clients)
    ]
    row: dict[str, Any] = {"rounds": rounds}
    for name in INGREDIENTS:
        row |= {
            f"{name}_mean": found[name]["test"].mean(),
            f"{name}_std": found[name]["test"].std(),
        }
        row |= {f"{name}_{flaw}": found[name][flaw].astype(float).mean() for flaw in FLAWS}
    for name, (more, less, _) in DIFFERENCES.items():
        test = statistics.difference(statistics.pairs(found[more], found[less]), study.margin)
        row |= {f"{name}_seeds": test["seeds"], f"{name}_mean": test["mean_difference"]}
        row |= {f"{name}_{end}": test[end] for end in ("low", "high", *FLAWS)}
    return row


_AT_R_ROUNDS = {"global": "global", "oracle": BOUND, "fedavg": "fedavg", "feddep": "feddep"}


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """Accuracies, then differences; a line a cell."""
    cell = ["dataset", "clients", "rounds"]
    levels, gaps = (
        [*cell, *(f"{name}_mean" for name in names)] for names in (INGREDIENTS, DIFFERENCES)
    )
    accuracy, differences = (
        md.shown(tables["table"], columns, ["setting"], 3) for columns in (levels, gaps)
    )
    return f"## Accuracy\n\n{accuracy}\n## Differences\n\n{differences}"


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a difference, a row a cell; what was measured in no cell is left out."""
    table = tables["table"]
    several = len(table) > len(table[["dataset", "clients"]].drop_duplicates())
    panels: dict[str, dict[str, Any]] = {}
    for name, (*_, title) in DIFFERENCES.items():
        for row in records(table) if table[f"{name}_mean"].notna().any() else ():
            cell = place_title(row["dataset"], row["clients"]) + (
                f", {row['setting']}" if several else ""
            )
            point = {part: row[f"{name}_{part}"] for part in ("mean", "low", "high", *FLAWS)}
            panels.setdefault(title, {})[cell] = {"": point}
    costs = [
        f"up to {table[f'{name}_mean'].max():.3f} {what}"
        for name, what in _COSTS.items()
        if table[f"{name}_mean"].any()
    ]
    title = f"FedAvg loses {', '.join(costs)}" if costs else "What FedAvg loses to Global"
    return figures.forests(
        f"{title}\n{study.title}", panels, "difference of test accuracy, mean and 95 % interval"
    )
