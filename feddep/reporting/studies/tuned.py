"""Kind ``tuned``: every method with hyperparameters of its own, chosen for each dataset on
validation nodes.

The runs of ``search_seeds`` are trials: settings and variants of a method.  All methods have
equally many on a dataset. The other runs are of what was chosen; the table compares them with those
of ``options.reference``, by default the first method.
"""

from typing import Any, cast

import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.reporting import figures, statistics
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import distinguishing, method_title, place_title
from feddep.reporting.load import Study
from feddep.reporting.statistics import FLAWS
from feddep.utils.errors import DataError

OF_CLIENTS = """\
*Worst client* and *client spread*: the least accuracy of a client, and their standard deviation.
"""
"""What pages say of columns of :data:`_OF_CLIENTS`."""
SHOWS = f"""\
Each method has the hyperparameters that did best on the validation nodes of a seed
that is in no table, among equally many trials for each method on a dataset; the last table names
them. Test accuracy at the round that is best on validation nodes, mean ± sample standard deviation
over seeds that the search has not seen; a method on the whole graph stands beside every M.
{OF_CLIENTS}{statistics.HOW_JUDGED}In the figure, numbers stand for what is far below.
"""
_POINT = ["setting", "method"]
_OF_CLIENTS = ["worst_client", "client_spread", "macro_f1"]
_COLUMNS = [
    *("dataset", "clients", "method", "reference", "mean", "std", "unfinished_runs"),
    *("seeds", "mean_difference", "std_difference", "low", "high", "p"),
    *(*statistics.JUDGED, *FLAWS, *_OF_CLIENTS, "bytes", "seconds"),
]


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``: a row a method, dataset and number of clients; ``choices``: a row a method and
    dataset.

    Returns:
        In ``table``: mean and std of test accuracy; unfinished_runs, their share; the differences
        from the reference, see :func:`feddep.reporting.statistics.compare`; unfinished and stalled,
        of the reference the shares of its runs; means of the accuracy of the worst client, of the
        standard deviation over clients, of macro-F1 where all runs have it, of the bytes that
        crossed the boundary, and of the seconds of a run with the steps before it.

        In ``choices``: trials, their number; chosen_setting and chosen_method as they are spelled;
        validation, its mean over the search's runs, and median_validation, that of all trials.

    Raises:
        DataError: if methods had unequal numbers of trials, no run is of another seed, or one is of
            other hyperparameters than were chosen.
    """
    runs = study.runs.assign(name=study.runs["method"].map(variants.base))
    searched = runs["seed"].isin(study.entry["search_seeds"] or ())
    choices, final = _choices(study.name, runs[searched]), runs[~searched]
    chosen = {
        (row["method"], row["dataset"]): (row["chosen_setting"], row["chosen_method"])
        for row in records(choices)
    }
    if final.empty:
        found = "; ".join(
            f"{method} with {setting} on {dataset}"
            for (_, dataset), (setting, method) in chosen.items()
        )
        raise DataError(
            f"studies.{study.name} runs its search_seeds alone; add runs of other seeds of what "
            f"they chose: {found}"
        )
    for row in records(final[["name", "dataset", *_POINT]].drop_duplicates()):
        choice = chosen.get((row["name"], row["dataset"]))
        if (row["setting"], row["method"]) != choice:
            found = "has no trial" if choice is None else f"chose {choice[1]} with {choice[0]}"
            raise DataError(
                f"studies.{study.name} runs {row['method']} with {row['setting']} on "
                f"{row['dataset']}, but its search {found}"
            )
    return {"table": compared(study, final), "choices": choices}


def _choices(name: str, trials: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (method, dataset), of in trials.groupby(["name", "dataset"], sort=False):
        scores = of.groupby(_POINT, sort=False)["validation"].mean()
        setting, spelled = cast(tuple, scores.idxmax())
        rows.append(
            {
                "method": method,
                "dataset": dataset,
                "trials": len(scores),
                "chosen_setting": setting,
                "chosen_method": spelled,
                "validation": scores.max(),
                "median_validation": scores.median(),
            }
        )
    table = pd.DataFrame(rows)
    if table.empty or (table.groupby("dataset")["trials"].nunique() > 1).any():
        counted = ", ".join(f"{row['method']} on {row['dataset']}: {row['trials']}" for row in rows)
        raise DataError(
            f"studies.{name} has unequal numbers of trials ({counted or 'none'}) with its "
            "search_seeds"
        )
    return in_paper_order(table, ["method", "dataset"])


def compared(
    study: Study, final: pd.DataFrame, baseline: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The ``table`` of :func:`tables`, of runs of the study that are no trials.

    Args:
        study: the study.
        final: the runs.
        baseline: runs of the reference that all of ``final`` are compared with; by default those
            in ``final``.
    """
    reference = study.entry["options"].get("reference", study.plan[0].method.name)
    names, seconds = final["method"].map(variants.base), final["seconds"] + final["seconds_before"]
    runs = final.assign(setting=study.name, method=names, seconds=seconds)
    tested = runs
    if baseline is None:
        tested, baseline = runs[names != reference], runs[names == reference]
    # Beside every number of clients that the reference has: what sees the whole graph, too.
    levels = runs.merge(
        baseline[["dataset", "clients"]].drop_duplicates(), on="dataset", suffixes=("_own", "")
    )
    levels = levels[
        levels["clients_own"].isna() | (levels["clients_own"] == levels["clients"]).fillna(False)
    ]
    keys = ["dataset", "clients", "method"]
    groups = levels.groupby(keys, sort=False)
    flaws = {f"{flaw}_runs": (flaw, "mean") for flaw in FLAWS}
    means = {
        name: (name, lambda values: values.mean(skipna=False))
        for name in (*_OF_CLIENTS, "bytes", "seconds")
    }
    table = groups.agg(mean=("test", "mean"), std=("test", "std"), **flaws, **means).reset_index()
    tests = statistics.compare(tested, baseline.assign(setting=study.name), study.margin)
    table = table.merge(tests, how="left", on=keys).assign(reference=reference)
    for flaw in FLAWS:
        table[flaw] = table[flaw].fillna(table[f"{flaw}_runs"])
    return in_paper_order(table, keys)[_COLUMNS].astype({"clients": "Int64", "seeds": "Int64"})


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """Accuracies and differences by dataset, and what was chosen."""
    chosen = [
        "method",
        "dataset",
        "configuration",
        "trials",
        "chosen_setting",
        "chosen_method",
        "validation",
        "median_validation",
    ]
    table = tables["table"]
    shown = ["configuration", "clients", "method", "mean", *statistics.SHOWN, *_OF_CLIENTS]
    accuracy = md.shown(table, shown, ["dataset"])
    reference = method_title(table["reference"].iloc[0])
    return (
        f"Differences are from {reference}.\n\n{accuracy}\n## What was "
        f"chosen\n\n{md.shown(tables['choices'], chosen, [])}"
    )


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a place, a row a method, the best in the mean first: differences from the reference.

    They are filled where there is a verdict, and numbers at the edge where far away.
    """
    table, reference = tables["table"], tables["table"]["reference"].iloc[0]
    gains = (
        table[table["method"] != reference].groupby("method", sort=False)["mean_difference"].mean()
    )
    names = list(gains.sort_values(ascending=False, kind="stable").index)
    short = distinguishing(table["dataset"])
    drawn: dict[str, dict[str, Any]] = {}
    for row in records(table):
        panel = drawn.setdefault(
            place_title(short[row["dataset"]], row["clients"]),
            {method_title(name): {} for name in names},
        )
        if row["method"] != reference:
            panel[method_title(row["method"])] = {"": {**row, "mean": row["mean_difference"]}}
    by_area = study.runs["setting"].str.contains("metric=roc_auc", regex=False).any()
    measure = "test accuracy, or area under the ROC curve," if by_area else "test accuracy"
    return figures.gains(study, table, drawn, method_title(reference), measure)
