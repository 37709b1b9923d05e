"""Average ranks of methods over datasets, with Friedman's test and Nemenyi's critical difference.

After Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006.  The
tests suppose independent observations, and he asks for one value a dataset: what is measured on one
dataset with other numbers of clients or seeds shares its nodes and edges.  So a method's value on a
dataset is its mean over both.
"""

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from feddep.reporting import figures
from feddep.reporting import markdown as md
from feddep.reporting.labels import is_oracle, method_title, sort_datasets, sort_methods
from feddep.reporting.statistics import SIGNIFICANT, critical_difference

NOTES = """\
## Average ranks

Ranks of test accuracy at the round that is best on validation nodes, 1 for the best, equals share
theirs. Methods that see the whole graph and oracles are left aside.

- The unit is the dataset, as Demšar (JMLR 7, 2006) asks for: a method's value is its mean over the
  numbers of clients M and the seeds. Cells that share a dataset share its nodes and edges; as
  observations they would not be independent, and tests over them would find differences too easily.
  *over cells*: the average rank over all datasets and M, for description only.
- *p*: Friedman's test, by its χ² approximation and by Iman and Davenport's F, which is the less
  conservative. Where p of the latter is below 0.05, two methods differ if their average ranks are
  Nemenyi's critical difference (CD) apart; otherwise no two are said to differ.
- With few datasets these tests can tell only what is far apart: not to differ does not mean to be
equal.
"""


def table(summary: pd.DataFrame) -> pd.DataFrame:
    """A row a setting and method, the best first, ranked over the datasets and numbers of clients
    that all methods have.

    Args:
        summary: as :func:`feddep.reporting.main.accuracy` gives it.

    Returns:
        setting, method, average_rank; datasets, their number; cells, their number, and cells_rank,
        the average rank over them; friedman_chi2, friedman_p (k − 1 degrees of freedom),
        iman_davenport_p (of F with k − 1 and (k − 1)(N − 1)) and critical_difference, NaN with
        fewer than three methods or two datasets, or if all are equal everywhere; and the rank on
        each dataset, such as ``rank_cora``.
    """
    tables = [
        _of_setting(str(setting), block)
        for setting, block in summary.groupby("setting", sort=False)
    ]
    return pd.concat(tables, ignore_index=True)


def _of_setting(setting: str, summary: pd.DataFrame) -> pd.DataFrame:
    rivals = summary[summary["clients"].notna() & ~summary["method"].map(is_oracle).astype(bool)]
    cells = rivals.pivot(index=["dataset", "clients"], columns="method", values="mean")[
        sort_methods(rivals["method"])
    ]
    # Accuracies are shares of a few thousand nodes: what differs by less is the same, summed up in
    # another order.
    cells = cells.dropna().astype(float).round(12)
    values = cells.groupby(level="dataset").mean().round(12)
    values = values.loc[sort_datasets(values.index)].iloc[:, : None if len(cells) else 0]
    ranks = values.rank(axis="columns", ascending=False)
    found = pd.DataFrame(
        {"setting": setting, "method": ranks.columns, "average_rank": ranks.mean().to_numpy()}
    )
    over_cells = cells.rank(axis="columns", ascending=False).mean()
    found = found.assign(
        datasets=len(values),
        cells=len(cells),
        cells_rank=over_cells.reindex(ranks.columns).to_numpy(),
    )
    found = found.assign(
        **_tests(values), **{f"rank_{name}": ranks.loc[name].to_numpy() for name in ranks.index}
    )
    return found.sort_values("average_rank", kind="stable")


def _tests(values: pd.DataFrame) -> dict[str, float]:
    """Friedman's χ² and p, Iman and Davenport's p, and Nemenyi's critical difference; values by
    dataset (rows) and method.
    """
    names = ("friedman_chi2", "friedman_p", "iman_davenport_p", "critical_difference")
    n, k = values.shape
    if n < 2 or k < 3 or not np.ptp(values.to_numpy(), axis=1).any():
        return dict.fromkeys(names, math.nan)
    chi2, p = stats.friedmanchisquare(*values.to_numpy().T)
    rest = n * (k - 1) - chi2  # 0 where all datasets agree
    f_p = stats.f.sf((n - 1) * chi2 / rest, k - 1, (k - 1) * (n - 1)) if rest > 1e-9 else 0.0
    critical = critical_difference(k, n)
    return dict(zip(names, map(float, (chi2, p, f_p, critical)), strict=True))


def markdown(ranks: pd.DataFrame) -> str:
    """A section a setting: the tests in words, its figure, and a line a method."""
    parts = [NOTES]
    for setting, of in ranks.groupby("setting", sort=False):
        columns = [str(name) for name in of if str(name).startswith("rank_")]
        lines = md.shown(of, ["method", "average_rank", *columns, "cells_rank"], [])
        figure = f"![Average ranks, setting {setting}](ranks_{setting}.svg)"
        parts.append(f"### Setting {setting}\n\n{_tests_in_words(of)}\n\n{figure}\n\n{lines}")
    return "\n".join(parts)


def _tests_in_words(of: pd.DataFrame) -> str:
    first = of.iloc[0]
    said = f"{len(of)} methods, {first['datasets']} datasets, {first['cells']} cells."
    if math.isnan(first["friedman_p"]):
        return (
            f"{said} No test: it needs three methods and two datasets, on which not all are equal."
        )
    said += (
        f" Friedman: χ² = {first['friedman_chi2']:.2f}, p = {first['friedman_p']:.3g}; Iman "
        "and Davenport: p = "
    )
    said += f"{first['iman_davenport_p']:.3g}. CD = {first['critical_difference']:.2f}."
    names, apart = [method_title(name) for name in of["method"]], _apart(of)
    if not len(apart):
        return f"{said} No two differ."
    return f"{said} These differ: {', '.join(f'{names[a]} and {names[b]}' for a, b in apart)}."


def _apart(of: pd.DataFrame) -> np.ndarray:
    """The pairs of rows that differ, shape (pairs, 2): none unless the test over all methods says
    that some do.
    """
    first, averages = of.iloc[0], of["average_rank"].to_numpy()
    differ = averages[None, :] - averages[:, None] >= first["critical_difference"]
    return np.argwhere(differ & (first["iman_davenport_p"] < SIGNIFICANT))


def figure(setting: str, of: pd.DataFrame) -> Figure:
    """Average ranks of a setting, with half a critical difference to both sides: methods whose bars
    do not overlap differ.
    """
    half = of["critical_difference"].fillna(0.0) / 2
    rows = {
        method_title(name): {
            "": {"method": name, "mean": rank, "low": rank - bar, "high": rank + bar}
        }
        for name, rank, bar in zip(of["method"], of["average_rank"], half, strict=True)
    }
    label = "average rank ± half the critical difference"
    title = f"{len(_apart(of))} of {math.comb(len(of), 2)} pairs of methods differ"
    return figures.forests(
        f"{title}\nAverage rank over datasets, setting {setting}", {"": rows}, label, rules={}
    )
