"""The main table: for each method, dataset and number of clients M our accuracies and the papers', as Markdown and LaTeX.

The layout is that of the papers' Table 2: datasets side by side, a line a method and source.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pandas as pd

from feddep.methods import registry
from feddep.reporting import markdown as md
from feddep.reporting import published
from feddep.reporting.frames import records
from feddep.reporting.labels import dataset_title, method_title, sort_datasets, sort_methods
from feddep.reporting.undertrained import MARK, PERCENT, mostly, note

OURS = "ours"
SELECTIONS = {
    "best": "test accuracy at the round that is best on validation",
    "last": "test accuracy after the last round",
}
"""The two ways to choose the round; none looks at the test nodes."""
SIGNIFICANT = 0.05
_SIDE_BY_SIDE = 2
"""Datasets beside each other on a page."""

_NOTES = """\
- *ours*: mean ± sample standard deviation over the seeds; for Local each seed's number is the mean over the clients' models.
- The round is chosen on validation nodes, never on test nodes; the numbers after the last round stand in the second table.
- **bold**: the two best of ours in a column, Global and oracles left aside. `*`: differs from FedAvg (paired t-test over seeds,
  Holm-corrected over the table, p < 0.05); see `comparisons.csv`.
- What a row assumes beyond FedAvg, what it sends and how long it takes stands in `costs.md`.
- *FedDEP paper*, *FedSage paper*: their Table 2, as printed. They train differently, the FedDEP paper as in the setting feddep,
  the FedSage paper as in fedsage; compare ours with the paper of its setting. The FedDEP paper says FedSage for FedSage+; the
  FedSage paper says GlobSage for Global, LocSage for Local and FedSage for FedAvg.
"""

Place = tuple[str, int | None]
"""A dataset and a number of clients; None where the method sees the whole graph."""


@dataclass(frozen=True)
class Cell:
    """One number: mean and standard deviation over repetitions (None if there was but one).

    Attributes:
        top: among the two best of ours at this place, methods that see the whole graph and oracles left aside.
        significant: differs from FedAvg, paired over seeds, Holm-corrected p below :data:`SIGNIFICANT`.
        undertrained: most of its runs are (:mod:`feddep.reporting.undertrained`).
        printed: a paper's number, whose standard deviation has no more digits than the paper gives.
    """

    mean: float
    std: float | None
    top: bool = False
    significant: bool = False
    undertrained: bool = False
    printed: bool = False

    def text(self, plus_minus: str = " ± ") -> str:
        """``0.8650 ± 0.0040``, or the mean alone."""
        if self.std is None:
            return f"{self.mean:.4f}"
        std = f"{self.std:.4f}"
        return f"{self.mean:.4f}{plus_minus}{std.removesuffix('0') if self.printed else std}"


@dataclass(frozen=True)
class Row:
    """The numbers of one method.

    Attributes:
        title: the method's name.
        whole: whether it sees the whole graph, whatever the number of clients.
        cells: by place the numbers there: ours by selection (a key of :data:`SELECTIONS`), the papers' by their titles.
    """

    title: str
    whole: bool
    cells: dict[Place, dict[str, Cell]]

    def papers(self, place: Place) -> dict[str, Cell]:
        """The papers' numbers at a place."""
        return {source: cell for source, cell in self.cells.get(place, {}).items() if source not in SELECTIONS}


@dataclass(frozen=True)
class Line:
    """A line of a printed table: the numbers of a method from one source, in the columns of some datasets."""

    title: str
    source: str
    whole: bool
    cells: list[Cell | None]

    @property
    def ours(self) -> bool:
        """Whether these are this project's numbers, not a paper's."""
        return self.source == OURS


@dataclass(frozen=True)
class MainTable:
    """One setting's main table: its columns, datasets first, and its rows, methods in the papers' order."""

    setting: str
    datasets: list[str]
    clients: list[int]
    rows: list[Row]

    @property
    def span(self) -> int:
        """Columns that a dataset takes: one a number of clients."""
        return max(1, len(self.clients))

    def places(self, row: Row, dataset: str) -> list[Place]:
        """The places of a row in the columns of a dataset: one for each M, or one for a method that sees the whole graph."""
        return [(dataset, None)] if row.whole else [(dataset, clients) for clients in self.clients]

    def blocks(self) -> list[list[str]]:
        """The datasets as they stand beside each other on a page."""
        return [self.datasets[start : start + _SIDE_BY_SIDE] for start in range(0, len(self.datasets), _SIDE_BY_SIDE)]

    def lines(self, datasets: Sequence[str], selection: str) -> list[Line]:
        """For each row with a number in one of the datasets ours, then each paper's; cells from left to right."""
        lines = []
        for row in self.rows:
            found = [row.cells.get(place, {}) for dataset in datasets for place in self.places(row, dataset)]
            for key, source in {selection: OURS, **{title: title for title in published.PAPERS.values()}}.items():
                cells = [numbers.get(key) for numbers in found]
                if any(cells):
                    lines.append(Line(row.title, source, row.whole, cells))
        return lines


def main_tables(summary: pd.DataFrame, comparisons: pd.DataFrame) -> list[MainTable]:
    """Lay out the summary, one table a setting.

    Args:
        summary: as :func:`feddep.reporting.accuracy.summarise` gives it.
        comparisons: as :func:`feddep.reporting.comparisons.against_reference` gives it.
    """

    def of(table: pd.DataFrame, setting: str) -> pd.DataFrame:
        return table[table["setting"] == setting]

    return [_main_table(name, of(summary, name), of(comparisons, name)) for name in dict.fromkeys(summary["setting"])]


def _main_table(setting: str, summary: pd.DataFrame, comparisons: pd.DataFrame) -> MainTable:
    top = {"best": _top_two(summary, "mean"), "last": _top_two(summary, "last_mean")}
    significant = _significant(comparisons)
    rows = []
    for method in sort_methods(summary["method"]):
        cells: dict[Place, dict[str, Cell]] = {}
        for line in records(summary[summary["method"] == method]):
            place = line["dataset"], line["clients"]
            at, late = (method, *place), mostly(line["undertrained"])
            cells[place] = {
                "best": Cell(line["mean"], line["std"], at in top["best"], at in significant, late),
                "last": Cell(line["last_mean"], line["last_std"], at in top["last"], undertrained=late),
                **{
                    title: Cell(line[f"paper_{paper}_mean"], line[f"paper_{paper}_std"], printed=True)
                    for paper, title in published.PAPERS.items()
                    if line[f"paper_{paper}_mean"] is not None
                },
            }
        rows.append(Row(method_title(method), all(clients is None for _, clients in cells), cells))
    clients = sorted(int(number) for number in summary["clients"].dropna().unique())
    return MainTable(setting, sort_datasets(summary["dataset"]), clients, rows)


def _top_two(summary: pd.DataFrame, mean: str) -> set[tuple[str, str, int]]:
    """(method, dataset, clients) of the two best at each place with more than two methods; ties make it more."""
    oracles = [registry.ORACLE in registry.find(name).assumes for name in summary["method"]]
    federated = summary[summary["clients"].notna() & ~np.array(oracles)]
    by_place = federated.groupby(["dataset", "clients"])[mean]
    second = by_place.transform(lambda means: means.nlargest(2).min())
    return _places(federated[(federated[mean] >= second) & (by_place.transform("size") > 2)])


def _significant(comparisons: pd.DataFrame) -> set[tuple[str, str, int]]:
    return _places(comparisons[comparisons["p_holm"] < SIGNIFICANT])


def _places(rows: pd.DataFrame) -> set[tuple[str, str, int]]:
    return {(line["method"], line["dataset"], line["clients"]) for line in records(rows)}


def markdown(tables: Sequence[MainTable]) -> str:
    """The main tables under both selections."""
    parts = ["# Node classification accuracy\n", _NOTES]
    for table in tables:
        parts.append(f"## TrainingConfig {table.setting}\n")
        for selection, title in (("best", "Main table"), ("last", "The other choice of the round")):
            parts.append(f"### {title}: {SELECTIONS[selection]}\n")
            parts += [_markdown_block(table, datasets, selection) for datasets in table.blocks()]
    if explained := note("".join(parts)):
        parts[1] += f"- {explained}\n"
    return "\n".join(parts)


def _markdown_block(table: MainTable, datasets: list[str], selection: str) -> str:
    columns = [f" M={clients}" for clients in table.clients] or [""]
    header = ["", "", *(dataset_title(dataset) + column for dataset in datasets for column in columns)]
    lines = []
    for line in table.lines(datasets, selection):
        # A method that sees the whole graph stands in the first column of each dataset.
        empty = [""] * (table.span - 1 if line.whole else 0)
        cells = chain.from_iterable([_markdown_cell(cell), *empty] for cell in line.cells)
        lines.append([line.title if line.ours else "", line.source, *cells])
    return md.table(header, lines)


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    text = f"**{cell.text()}**" if cell.top else cell.text()
    return text + (" \\*" if cell.significant else "") + (f" {MARK}" if cell.undertrained else "")


def latex(tables: Sequence[MainTable]) -> str:
    """The main tables, a ``table*`` a setting and selection; they need the packages booktabs and xcolor."""
    return "% \\usepackage{booktabs,xcolor}\n" + "\n".join(_latex(table, how) for table in tables for how in SELECTIONS)


def escape(text: str) -> str:
    """Text that LaTeX prints as it stands."""
    words = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(words.get(character, f"\\{character}" if character in "&%$#_{}" else character) for character in text)


def _latex(table: MainTable, selection: str) -> str:
    caption = (
        f"Node classification, setting {escape(table.setting)}: {SELECTIONS[selection]}, mean $\\pm$ sample standard "
        "deviation over seeds, above the papers' numbers. Bold: the two best of ours, Global and oracles left aside."
    )
    if selection == "best":
        caption += " $^*$: differs from FedAvg (paired $t$-test, Holm-corrected over the table, $p<0.05$)."
    blocks = "\n\\medskip\n\n".join(_latex_block(table, datasets, selection) for datasets in table.blocks())
    if r"\ddagger" in blocks:
        caption += rf" $^\ddagger$: most runs are best among the last {PERCENT}\% of their rounds, and might be better with more."
    return (
        "\\begin{table*}[t]\n\\centering\\footnotesize\\setlength{\\tabcolsep}{4pt}\n"
        f"\\caption{{{caption}}}\n\\label{{tab:accuracy-{table.setting}-{selection}}}\n{blocks}\n\\end{{table*}}\n"
    )


def _latex_block(table: MainTable, datasets: list[str], selection: str) -> str:
    span = table.span

    def spanning(text: str) -> str:
        return f"\\multicolumn{{{span}}}{{c}}{{{text}}}"

    rows = [["", "", *(spanning(escape(dataset_title(dataset))) for dataset in datasets)]]
    rules = "".join(f"\\cmidrule(lr){{{3 + span * k}-{2 + span * (k + 1)}}}" for k in range(len(datasets)))
    if table.clients:
        rows.append(["Method", "", *(f"$M={clients}$" for _ in datasets for clients in table.clients)])
    for line in table.lines(datasets, selection):
        shade: Callable[[str], str] = str if line.ours else _gray
        cells = [shade(_latex_cell(cell)) if cell else "" for cell in line.cells]
        title = f"\\midrule\n{escape(line.title)}" if line.ours else ""
        rows.append([title, shade(line.source), *(map(spanning, cells) if line.whole else cells)])
    first, *others = [" & ".join(row) + r" \\" for row in rows]
    columns = f"ll*{{{span * len(datasets)}}}{{c}}"
    return "\n".join([f"\\begin{{tabular}}{{{columns}}}", r"\toprule", first, rules, *others, r"\bottomrule", r"\end{tabular}"])


def _gray(text: str) -> str:
    return f"\\textcolor{{gray}}{{{text}}}"


def _latex_cell(cell: Cell) -> str:
    mean, _, std = cell.text("|").partition("|")
    numbers = f"\\mathbf{{{mean}}}" if cell.top else mean
    spread = f"{{\\pm}}{std}" if std else ""
    marks = "*" * cell.significant + r"\ddagger" * cell.undertrained
    return f"${numbers}{spread}{f'^{{{marks}}}' if marks else ''}$"


def terminal(tables: Sequence[MainTable], seeds: Sequence[int]) -> str:
    """Plain text, one block a setting, dataset and M, each published number with the distance of ours from it.

    Args:
        tables: the main tables.
        seeds: numbers of seeds that occur.
    """
    header = [
        "",
        "best on validation",
        "last round",
        *(text for title in published.PAPERS.values() for text in (title, "ours − it")),
    ]
    blocks: dict[str, list[list[str]]] = {}
    for table in tables:
        for dataset in table.datasets:
            for k in range(table.span):
                clients = table.clients[k] if table.clients else None
                at = [(row, (dataset, None if row.whole else clients)) for row in table.rows]
                lines = [_terminal_line(row, place) for row, place in at if place in row.cells]
                title = f"{dataset_title(dataset)}{f', {clients} clients' if clients else ''} (setting {table.setting})"
                if lines:
                    blocks[title] = [header, *lines]
    widths = [max(map(len, column)) for column in zip(*chain.from_iterable(blocks.values()), strict=True)]
    parts = []
    for title, lines in blocks.items():
        aligned = ("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines)
        parts.append("\n".join([title, *(f"  {line}".rstrip() for line in aligned)]))
    counts = " or ".join(map(str, sorted(set(seeds))))
    alone = "Test accuracy; one seed, so there is no standard deviation."
    parts.append(alone if counts == "1" else f"Test accuracy, mean ± sample standard deviation over {counts} seeds.")
    if explained := note("".join(parts)):
        parts[-1] += f"\n{explained}"
    return "\n\n".join(parts) + "\n"


def _terminal_line(row: Row, place: Place) -> list[str]:
    ours, papers = row.cells[place], row.papers(place)
    late = f" {MARK}" if ours["best"].undertrained else ""
    line = [row.title, ours["best"].text() + late, ours["last"].text()]
    for source in published.PAPERS.values():
        if source in papers:
            line += [papers[source].text(), f"{ours['best'].mean - papers[source].mean:+.4f}".replace("-", "−")]
        else:
            line += ["–", ""]
    return line
