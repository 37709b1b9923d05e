"""Kind ``tuned``: every method with hyperparameters of its own, chosen for each dataset on validation nodes.

The runs of ``search_seeds`` are trials: settings and variants of a method.  All methods have equally many on a dataset.
The other runs are of what was chosen; the table compares them with those of the method that the first block names first.
"""

from typing import Any, cast

import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.reporting import comparisons, drawing
from feddep.reporting import markdown as md
from feddep.reporting.frames import records
from feddep.reporting.labels import dataset_title, method_title, place_title, sort_datasets, sort_methods
from feddep.reporting.main_table import SIGNIFICANT
from feddep.reporting.study_data import Study
from feddep.reporting.undertrained import mark
from feddep.utils.errors import DataError

SHOWS = """\
Each method has the hyperparameters that did best on the validation nodes of a seed that is in no table, among equally many
trials for each method on a dataset; the last table names them. Test accuracy at the round that is best on validation nodes,
mean ± sample standard deviation over seeds that the search has not seen; a method on the whole graph stands beside every M.
Differences are paired by seed; brackets: 95 % t-interval; `*`: significant at 5 % after Holm's correction over all differences of
the table. In the figure, an arrow stands for what is far below.
"""
_POINT = ["setting", "method"]
_COLUMNS = ["dataset", "clients", "method", "reference", "mean", "std", "undertrained_runs"]
_COLUMNS += ["seeds", "mean_difference", "low", "high", "p", "p_holm", "undertrained"]
FAR = 0.05
"""How far below the reference, in accuracy, a method is left out of the choice of the figure's axis."""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``: a row a method, dataset and number of clients; ``choices``: a row a method and dataset.

    Returns:
        In ``table``: dataset, clients, method, reference; mean and std of test accuracy; undertrained_runs, the share of these
        runs that are; seeds, mean_difference, low, high, p and p_holm of the differences from the reference, see
        :func:`feddep.reporting.comparisons.paired_t_test`; undertrained, the greater of the two rows' shares.
        In ``choices``: method, dataset, trials, chosen_setting and chosen_method as they are spelled, validation (its mean
        over the search's runs) and median_validation, that of all trials.

    Raises:
        DataError: if methods had unequal numbers of trials, or a run is of other hyperparameters than were chosen.
    """
    runs = study.runs.assign(name=[variants.base(spelled) for spelled in study.runs["method"]])
    searched = runs["seed"].isin(study.search_seeds)
    choices = _choices(study.name, runs[searched])
    chosen = {(row["method"], row["dataset"]): row for row in records(choices)}
    final = runs[~searched]
    for row in records(final[["name", "dataset", *_POINT]].drop_duplicates()):
        choice = chosen.get((row["name"], row["dataset"]))
        if choice is None or (row["setting"], row["method"]) != (choice["chosen_setting"], choice["chosen_method"]):
            found = "has no trial" if choice is None else f"chose {choice['chosen_method']} with {choice['chosen_setting']}"
            raise DataError(
                f"studies.{study.name} runs {row['method']} with {row['setting']} on {row['dataset']}, but its search {found}"
            )
    reference = variants.base(study.finished[0].run.method)
    return {"table": _compared(final.assign(setting=study.name, method=final["name"]), reference), "choices": choices}


def _choices(name: str, trials: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (method, dataset), of in trials.groupby(["name", "dataset"], sort=False):
        scores = of.groupby(_POINT, sort=False)["validation"].mean()
        setting, spelled = cast(tuple, scores.idxmax())
        rows.append(
            {
                **{"method": method, "dataset": dataset, "trials": len(scores)},
                **{"chosen_setting": setting, "chosen_method": spelled},
                **{"validation": scores.max(), "median_validation": scores.median()},
            }
        )
    table = pd.DataFrame(rows)
    if table.empty or (table.groupby("dataset")["trials"].nunique() > 1).any():
        counted = ", ".join(f"{row['method']} on {row['dataset']}: {row['trials']}" for row in rows)
        raise DataError(f"studies.{name} has unequal numbers of trials ({counted or 'none'}) with its search_seeds")
    order = sort_methods(table["method"]), sort_datasets(table["dataset"])
    places = table.apply(lambda row: (order[0].index(row["method"]), order[1].index(row["dataset"])), axis="columns")
    return table.loc[places.sort_values().index].reset_index(drop=True)


def _compared(runs: pd.DataFrame, reference: str) -> pd.DataFrame:
    baseline = runs[runs["method"] == reference]
    rows: list[dict[str, Any]] = []
    for dataset in sort_datasets(runs["dataset"]):
        here = runs[runs["dataset"] == dataset]
        for clients in sorted(baseline.loc[baseline["dataset"] == dataset, "clients"].unique()):
            for method in sort_methods(here["method"]):
                of = here[(here["method"] == method) & (here["clients"].isna() | (here["clients"] == clients))]
                beside = baseline[(baseline["dataset"] == dataset) & (baseline["clients"] == clients)]
                test = {} if method == reference else comparisons.difference(of, beside)
                where = {"dataset": dataset, "clients": clients, "method": method, "reference": reference}
                level = {"mean": of["best"].mean(), "std": of["best"].std(ddof=1), "undertrained_runs": of["undertrained"].mean()}
                late = max(level["undertrained_runs"], beside["undertrained"].mean())
                rows.append({**where, **test, **level, "undertrained": late})
    table = pd.DataFrame(rows)
    table["p_holm"] = comparisons.holm(table["p"].to_numpy(dtype=float))
    return table[_COLUMNS].astype({"clients": "Int64", "seeds": "Int64"})


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """Accuracies, differences, and what was chosen."""
    table, choices = tables["table"], tables["choices"]
    places = list(dict.fromkeys(zip(table["dataset"], table["clients"], strict=True)))
    found = {(line["method"], line["dataset"], line["clients"]): line for line in records(table)}
    names = sort_methods(table["method"])
    header = ["method", *(place_title(*place) for place in places)]
    levels, gaps = [], []
    for name in names:
        lines = [found.get((name, *place), {}) for place in places]
        levels.append([method_title(name), *(_level(line) for line in lines)])
        if name != table["reference"].iloc[0]:
            gaps.append([method_title(name), *(_difference(line) for line in lines)])
    chosen = [
        [
            *(method_title(row["method"]), dataset_title(row["dataset"]), row["chosen_setting"]),
            *(row["chosen_method"], md.plus_minus(row["validation"], None), md.plus_minus(row["median_validation"], None)),
        ]
        for row in records(choices)
    ]
    reference = method_title(table["reference"].iloc[0])
    trials = choices.groupby("trials", sort=False)["dataset"].unique()
    counted = "; ".join(f"{number} on {', '.join(map(dataset_title, datasets))}" for number, datasets in trials.items())
    return (
        f"Trials for each method: {counted}.\n\n## Accuracy\n\n{md.table(header, levels)}\n"
        f"## Difference from {reference}\n\n{md.table(header, gaps)}\n## What was chosen\n\n"
        + md.table(["method", "dataset", "setting", "method as spelled", "validation", "median of trials"], chosen)
    )


def _level(line: dict[str, Any]) -> str:
    return md.plus_minus(line.get("mean"), line.get("std")) + mark(line.get("undertrained_runs"))


def _difference(line: dict[str, Any]) -> str:
    if line.get("mean_difference") is None:
        return md.number(None, "")
    star = " \\*" if line["p_holm"] is not None and line["p_holm"] < SIGNIFICANT else ""
    return md.interval(line["mean_difference"], line["low"], line["high"]) + star + mark(line["undertrained"])


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a place, a row a method: differences from the reference; filled where significant.

    The axis holds all intervals of the methods that are nowhere :data:`FAR` below; others lie beyond its end, at an arrow.
    """
    table = tables["table"]
    reference = table["reference"].iloc[0]
    table = table[table["method"] != reference].assign(significant=table["p_holm"] < SIGNIFICANT)
    near = table[table.groupby("method")["mean_difference"].transform("min") > -FAR]
    near = table if near.empty else near
    low, high = near[["low", "mean_difference"]].min(axis=None), near[["high", "mean_difference"]].max(axis=None)
    margin = 0.05 * (high - low) or FAR
    limits = (low - margin, high + margin)
    names = sort_methods(table["method"])
    places = list(dict.fromkeys(zip(table["dataset"], table["clients"], strict=True)))
    with drawing.style():
        height = 0.4 + 0.22 * len(names)
        drawn, axes = drawing.tiles(len(places), 6, lambda rows, columns: (2.0 + 1.7 * columns, 1.0 + height * rows))
        for ax, place in zip(axes.flat, places, strict=False):  # what is over is blank
            here = table[(table["dataset"] == place[0]) & (table["clients"] == place[1])]
            points = {line["method"]: line for line in records(here)}
            titles = [method_title(name) for name in names]
            drawing.forest(ax, titles, {"": [points.get(name, {}) for name in names]}, {"": drawing.colour(0)})
            for row, name in enumerate(names):
                if points.get(name, {}).get("mean_difference", 0.0) < limits[0]:
                    ax.plot(limits[0], row, color=drawing.colour(0), marker="<", clip_on=False)
            ax.set_xlim(*limits)
            ax.set_title(place_title(*place))
            if ax not in axes[:, 0]:
                ax.set_yticklabels([])
        drawn.supxlabel(f"test accuracy less that of {method_title(reference)}, mean and 95 % interval", fontsize="medium")
        handles = [
            drawing.sample("significant", color=drawing.colour(0), marker="o", linestyle="none"),
            drawing.sample("not significant", color=drawing.colour(0), marker="o", markerfacecolor="white", linestyle="none"),
            drawing.sample("far below", color=drawing.colour(0), marker="<", linestyle="none"),
        ]
        handles += drawing.undertrained_sample(records(table))
        drawing.head(drawn, study.title, handles, columns=4)
    return drawn
