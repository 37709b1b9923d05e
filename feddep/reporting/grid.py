"""The main table before it is Markdown, LaTeX or HTML: one row a framework and source, one cell a dataset and M."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from feddep.reporting import published
from feddep.reporting.assumptions import ORACLE, assumptions
from feddep.reporting.frames import records
from feddep.reporting.labels import framework_title, sort_datasets, sort_frameworks

OURS = "ours"
SELECTIONS = {
    "best": "test accuracy at the round that is best on validation",
    "last": "test accuracy after the last round",
}
"""The two ways to choose the round; none looks at the test nodes."""
SIGNIFICANT = 0.05

Place = tuple[str, int | None]
"""A dataset and a number of clients; None where the framework sees the whole graph."""


@dataclass(frozen=True)
class Cell:
    """One number: mean and standard deviation over repetitions (None if there was but one).

    Attributes:
        top: among the two best of ours at this place, frameworks that see the whole graph and oracles left aside.
        significant: differs from FedAvg, paired over seeds, Holm-corrected p below :data:`SIGNIFICANT`.
        printed: a paper's number, whose standard deviation has no more digits than the paper gives.
    """

    mean: float
    std: float | None
    top: bool = False
    significant: bool = False
    printed: bool = False

    def text(self, plus_minus: str = " ± ") -> str:
        """``0.8650 ± 0.0040``, or the mean alone."""
        if self.std is None:
            return f"{self.mean:.4f}"
        std = f"{self.std:.4f}"
        return f"{self.mean:.4f}{plus_minus}{std.removesuffix('0') if self.printed else std}"


@dataclass(frozen=True)
class Row:
    """The numbers of one framework from one source; ``whole`` says that it sees the whole graph, whatever the clients."""

    framework: str
    source: str
    whole: bool
    cells: dict[Place, Cell]

    @property
    def ours(self) -> bool:
        """Whether these are this project's numbers, not a paper's."""
        return self.source == OURS


@dataclass(frozen=True)
class Grid:
    """One setting's main table.

    Attributes:
        setting: key of the setting in the configuration.
        selection: key of :data:`SELECTIONS`.
        datasets, clients: the columns, groups first.
        rows: frameworks in the papers' order, ours first, then each paper that has a number.
    """

    setting: str
    selection: str
    datasets: list[str]
    clients: list[int]
    rows: list[Row]

    def blocks(self, width: int = 2) -> list[list[str]]:
        """The datasets in groups of ``width``, as they stand beside each other on a page."""
        return [self.datasets[start : start + width] for start in range(0, len(self.datasets), width)]

    @property
    def span(self) -> int:
        """Columns that a dataset takes: one a number of clients."""
        return max(1, len(self.clients))

    def lines(self, datasets: list[str]) -> list[tuple[Row, list[Cell | None]]]:
        """Rows that have a number in one of the datasets, with their cells from left to right.

        A framework that sees the whole graph has one cell a dataset, every other one :attr:`span` cells a dataset.
        """
        lines = []
        for row in self.rows:
            columns: list[int | None] = [None] if row.whole else [*self.clients]
            cells = [row.cells.get((dataset, clients)) for dataset in datasets for clients in columns]
            if any(cells):
                lines.append((row, cells))
        return lines


def grids(summary: pd.DataFrame, comparisons: pd.DataFrame, selection: str) -> list[Grid]:
    """Lay out the summary, one grid a setting.

    Args:
        summary: as :func:`feddep.reporting.accuracy.summarise` gives it.
        comparisons: as :func:`feddep.reporting.comparisons.against_reference` gives it.
        selection: key of :data:`SELECTIONS`.
    """
    settings = dict.fromkeys(summary["setting"])
    return [_grid(name, _of(summary, name), _of(comparisons, name), selection) for name in settings]


def _of(table: pd.DataFrame, setting: str) -> pd.DataFrame:
    return table[table["setting"] == setting]


def _grid(setting: str, summary: pd.DataFrame, comparisons: pd.DataFrame, selection: str) -> Grid:
    mean, std = ("mean", "std") if selection == "best" else ("last_mean", "last_std")
    top = _top_two(summary, mean)
    significant = _significant(comparisons) if selection == "best" else set()
    rows = []
    for framework in sort_frameworks(summary["framework"]):
        title = framework_title(framework)
        places = {(line["dataset"], line["clients"]): line for line in records(summary[summary["framework"] == framework])}
        whole = all(clients is None for _, clients in places)
        ours = {
            place: Cell(line[mean], line[std], top=(framework, *place) in top, significant=(framework, *place) in significant)
            for place, line in places.items()
        }
        rows.append(Row(title, OURS, whole, ours))
        for paper, source in published.PAPERS.items():
            theirs = {
                place: Cell(line[f"paper_{paper}_mean"], line[f"paper_{paper}_std"], printed=True)
                for place, line in places.items()
                if line[f"paper_{paper}_mean"] is not None
            }
            if theirs:
                rows.append(Row(title, source, whole, theirs))
    clients = sorted(int(number) for number in summary["clients"].dropna().unique())
    return Grid(setting, selection, sort_datasets(summary["dataset"]), clients, rows)


def _top_two(summary: pd.DataFrame, mean: str) -> set[tuple[str, str, int]]:
    """(framework, dataset, clients) of the two best at each place with more than two frameworks; ties make it more."""
    oracles = [ORACLE in assumptions(name) for name in summary["framework"]]
    federated = summary[summary["clients"].notna() & ~np.array(oracles)]
    by_place = federated.groupby(["dataset", "clients"])[mean]
    second = by_place.transform(lambda means: means.nlargest(2).min())
    best = federated[(federated[mean] >= second) & (by_place.transform("size") > 2)]
    return {(line["framework"], line["dataset"], line["clients"]) for line in records(best)}


def _significant(comparisons: pd.DataFrame) -> set[tuple[str, str, int]]:
    found = comparisons[comparisons["p_holm"] < SIGNIFICANT]
    return {(line["framework"], line["dataset"], line["clients"]) for line in records(found)}
