"""Average ranks of methods over datasets, with Friedman's test and Nemenyi's critical difference.

After Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006.  The tests suppose independent
observations, and he asks for one value a dataset: what is measured on one dataset with other numbers of clients or seeds shares
its nodes and edges.  So a method's value on a dataset is its mean over both.
"""

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from feddep.methods import registry
from feddep.reporting import drawing
from feddep.reporting import markdown as md
from feddep.reporting.labels import dataset_title, method_title, sort_datasets, sort_methods
from feddep.reporting.main_table import SIGNIFICANT

_NOTES = """\
Ranks of test accuracy at the round that is best on validation nodes, 1 for the best, equals share theirs. Methods that see the
whole graph and oracles are left aside.

- The unit is the dataset, as Demšar (JMLR 7, 2006) asks for: a method's value is its mean over the numbers of clients M and
  the seeds. Cells that share a dataset share its nodes and edges; as observations they would not be independent, and tests over
  them would find differences too easily. *over cells*: the average rank over all datasets and M, for description only.
- *p*: Friedman's test, by its χ² approximation and by Iman and Davenport's F, which is the less conservative. Where p of the
  latter is below 0.05, two methods differ if Nemenyi's p is below 0.05, that is if their average ranks are a critical
  difference (CD) apart; otherwise no two are said to differ.
- With few datasets these tests can tell only what is far apart: not to differ does not mean to be equal.
"""
_DEPENDENT = "One value a dataset, the mean over M and seeds, as cells that share a dataset are not independent."


@dataclass(frozen=True)
class Ranking:
    """The ranks of one setting.

    Attributes:
        setting: its name.
        ranks: rank of each method (columns, the best first) on each dataset (rows).
        over_cells: average rank over datasets and numbers of clients, by method.
        cells: how many of these there are.
        chi2, p: Friedman's statistic, chi-squared with k − 1 degrees of freedom, and its p; NaN with fewer than three methods
            or two datasets, or if all are equal everywhere.
        f_p: p of Iman and Davenport's F, with k − 1 and (k − 1)(N − 1) degrees of freedom.
        critical_difference: Nemenyi's, at :data:`feddep.reporting.main_table.SIGNIFICANT`; NaN likewise.
        pairs: Nemenyi's p of each pair of methods; 1 for all if ``f_p`` is not significant.
    """

    setting: str
    ranks: pd.DataFrame
    over_cells: pd.Series
    cells: int
    chi2: float
    p: float
    f_p: float
    critical_difference: float
    pairs: pd.DataFrame

    @property
    def average(self) -> pd.Series:
        """Average rank over the datasets, by method."""
        return self.ranks.mean()


def rank(summary: pd.DataFrame) -> list[Ranking]:
    """Rank the methods of each setting, over the datasets and numbers of clients that all of them have.

    Args:
        summary: as :func:`feddep.reporting.accuracy.summarise` gives it.
    """
    return [_rank(str(setting), block) for setting, block in summary.groupby("setting", sort=False)]


def _rank(setting: str, summary: pd.DataFrame) -> Ranking:
    rivals = summary[summary["clients"].notna() & summary["method"].map(_is_rival)]
    cells = rivals.pivot(index=["dataset", "clients"], columns="method", values="mean")[sort_methods(rivals["method"])]
    # Accuracies are shares of a few thousand nodes: what differs by less is the same, summed up in another order.
    cells = cells.dropna().astype(float).round(12)
    cells = cells.iloc[:, : cells.shape[1] if len(cells) else 0]  # with nothing in common there is nothing to rank
    by_dataset = cells.groupby(level="dataset").mean().round(12)
    values = by_dataset.loc[sort_datasets(by_dataset.index)]
    ranks = values.rank(axis="columns", ascending=False)
    best_first = ranks.mean().sort_values(kind="stable").index
    tests = _tests(values[best_first])
    over_cells = cells.rank(axis="columns", ascending=False).mean()
    return Ranking(setting, ranks[best_first], over_cells[best_first], len(cells), *tests)


def _is_rival(name: str) -> bool:
    return registry.ORACLE not in registry.find(name).assumes


def _tests(values: pd.DataFrame) -> tuple[float, float, float, float, pd.DataFrame]:
    """Friedman's χ² and p, Iman and Davenport's p, the critical difference, and Nemenyi's p of pairs; values by dataset."""
    (n, k), names = values.shape, values.columns
    alike = pd.DataFrame(1.0, index=names, columns=names)
    if n < 2 or k < 3 or not np.ptp(values.to_numpy(), axis=1).any():
        return math.nan, math.nan, math.nan, math.nan, alike
    import scikit_posthocs  # takes more than a second

    chi2, p = stats.friedmanchisquare(*values.to_numpy().T)
    rest = n * (k - 1) - chi2  # 0 where all datasets agree
    f_p = stats.f.sf((n - 1) * chi2 / rest, k - 1, (k - 1) * (n - 1)) if rest > 1e-9 else 0.0
    critical = stats.studentized_range.ppf(1 - SIGNIFICANT, k, np.inf) * math.sqrt(k * (k + 1) / (12 * n))
    pairs = scikit_posthocs.posthoc_nemenyi_friedman(values.to_numpy()).set_axis(names).set_axis(names, axis="columns")
    return float(chi2), float(p), float(f_p), float(critical), pairs if f_p < SIGNIFICANT else alike


def table(rankings: list[Ranking]) -> pd.DataFrame:
    """A row a setting and method, the best first.

    Returns:
        setting, method, average_rank; datasets, their number; cells, their number, and cells_rank, the average rank over
        them; friedman_chi2, friedman_p, iman_davenport_p and critical_difference as in :class:`Ranking`, the same in all rows of
        a setting; and the rank on each dataset, such as ``rank_cora``, empty where a setting does not have it.
    """
    rows = []
    for one in rankings:
        tests = {"friedman_chi2": one.chi2, "friedman_p": one.p, "iman_davenport_p": one.f_p}
        tests["critical_difference"] = one.critical_difference
        for name in map(str, one.ranks.columns):
            counts = {"datasets": len(one.ranks), "cells": one.cells, "cells_rank": one.over_cells[name]}
            by_dataset = {f"rank_{dataset}": value for dataset, value in one.ranks[name].items()}
            names = {"setting": one.setting, "method": name, "average_rank": one.average[name]}
            rows.append({**names, **counts, **tests, **by_dataset})
    columns = ["setting", "method", "average_rank", "datasets", "cells", "cells_rank"]
    columns += ["friedman_chi2", "friedman_p", "iman_davenport_p", "critical_difference"]
    return pd.DataFrame(rows, columns=list(dict.fromkeys([*columns, *(column for row in rows for column in row)])))


def markdown(rankings: list[Ranking]) -> str:
    """A section a setting: the tests in words, and a line a method."""
    return "\n".join(["# Average ranks\n", _NOTES, *map(_section, rankings)])


def _section(one: Ranking) -> str:
    datasets = [dataset_title(name) for name in one.ranks.index]
    averages = one.average
    lines = [
        [
            method_title(name),
            f"{averages[name]:.2f}",
            *(f"{rank:g}" for rank in one.ranks[name]),
            f"{one.over_cells[name]:.2f}",
        ]
        for name in one.ranks.columns
    ]
    header = ["", "average rank", *datasets, "over cells"]
    return f"## TrainingConfig {one.setting}\n\n{_words(one)}\n\n{md.table(header, lines)}"


def _datasets(n: int) -> str:
    return f"{n} {'dataset' if n == 1 else 'datasets'}"


def _words(one: Ranking) -> str:
    n, k = one.ranks.shape
    said = f"{k} methods, {_datasets(n)}, {one.cells} cells."
    if math.isnan(one.p):
        return f"{said} No test: it needs three methods and two datasets, on which not all are equal."
    said += f" Friedman: χ² = {one.chi2:.2f}, p = {one.p:.3g}; Iman and Davenport: p = {one.f_p:.3g}."
    said += f" CD = {one.critical_difference:.2f}."
    found = [f"{method_title(a)} and {method_title(b)} (p = {p:.3g})" for a, b, p in _different(one)]
    return f"{said} These differ: {', '.join(found)}." if found else f"{said} No two differ."


def _different(one: Ranking) -> list[tuple[str, str, float]]:
    """The pairs that differ, each with its p."""
    names, p = [str(name) for name in one.ranks.columns], one.pairs.to_numpy(dtype=float)
    return [(names[a], names[b], p[a, b]) for a, b in combinations(range(len(names)), 2) if p[a, b] < SIGNIFICANT]


def figure(one: Ranking) -> Figure:
    """A critical-difference diagram: average ranks on an axis, a bar below all that do not differ, and above how long a CD is."""
    names = {name: method_title(name) for name in one.ranks.columns}
    n = len(one.ranks)
    with drawing.style():
        drawn, axes = drawing.panels(1, 1, (7.2, 1.9 + 0.11 * len(names)))
        ax = axes[0, 0]
        ax.grid(visible=False)
        if names:
            _diagram(ax, one, names)
        else:
            ax.set_axis_off()
        drawing.head(drawn, f"Average rank over {_datasets(n)}, setting {one.setting}")
        tests = "No test" if math.isnan(one.p) else f"Friedman p = {one.p:.2g}, Iman and Davenport p = {one.f_p:.2g}"
        drawn.supxlabel(f"{tests}.\n{_DEPENDENT}", fontsize=7, color=drawing.INK)
    return drawn


def _diagram(ax: Axes, one: Ranking, names: dict[str, str]) -> None:
    import scikit_posthocs

    found = scikit_posthocs.critical_difference_diagram(
        one.average.rename(names),
        one.pairs.rename(index=names, columns=names),
        alpha=SIGNIFICANT,
        ax=ax,
        label_fmt_left="{label} ({rank:.2f})",
        label_fmt_right="({rank:.2f}) {label}",
        elbow_props={"linewidth": 0.8, "color": drawing.INK},
        marker_props={"color": drawing.INK, "s": 12},
        crossbar_props={"color": drawing.COLOURS[0]},
        text_h_margin=0.1,
    )
    # The library draws a bar through the members of a set, in an order that differs from process to process.
    for (bar,) in found["crossbars"]:
        ends = min(bar.get_xdata()), max(bar.get_xdata())
        bar.set_data(ends, [bar.get_ydata()[0]] * 2)
    last = float(len(names))
    ax.set_xticks(range(1, len(names) + 1))
    ax.spines["top"].set(visible=True, bounds=(1, last))
    # The library would draw the ruler over the ticks' labels.
    if not math.isnan(one.critical_difference):
        end = 1 + one.critical_difference
        ax.errorbar((1 + end) / 2, 1.5, xerr=one.critical_difference / 2, color=drawing.INK, capsize=3, elinewidth=1.2)
        ax.text((1 + end) / 2, 1.75, f"CD = {one.critical_difference:.2f}", ha="center", va="bottom", color=drawing.INK)
        last = max(last, end)
    ax.set_xlim(0.9, last + 0.1)
