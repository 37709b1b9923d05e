"""Tables as Markdown that reads well raw, too."""

import pandas as pd

from feddep.reporting import published
from feddep.reporting.frames import records
from feddep.reporting.grid import OURS, SELECTIONS, Cell, Grid
from feddep.reporting.labels import dataset_title

_ACCURACY_NOTES = """\
- *ours*: mean ± sample standard deviation over the seeds; for Local each seed's number is the mean over the clients' models.
- The round is chosen on validation nodes, never on test nodes; the numbers after the last round stand in the second table.
- **bold**: the two best of ours in a column, Global and oracles left aside. `*`: differs from FedAvg (paired t-test over seeds,
  Holm-corrected over the table, p < 0.05); see `comparisons.csv`.
- What a row assumes beyond FedAvg, what it sends and how long it takes stands in `costs.md`.
- *FedDEP paper*, *FedSage paper*: their Table 2, as printed. They train differently, the FedDEP paper as in the setting feddep,
  the FedSage paper as in fedsage; compare ours with the paper of its setting. The FedDEP paper says FedSage for FedSage+; the
  FedSage paper says GlobSage for Global, LocSage for Local and FedSage for FedAvg.
"""
_PARTITION_NOTES = """\
Edges are undirected. *Missing edges* join nodes of different clients, so that no client knows them; *share* is their part of
all edges. *ours*: mean over seeds, ± sample standard deviation.
"""


def accuracy(best: list[Grid], last: list[Grid]) -> str:
    """The main table under both selections, in the layout of the papers' Table 2.

    Args:
        best, last: one grid a setting, as :func:`feddep.reporting.grid.grids` gives them for each selection.
    """
    parts = ["# Node classification accuracy\n", _ACCURACY_NOTES]
    for main, end in zip(best, last, strict=True):
        parts.append(f"## Setting {main.setting}\n")
        for grid, title in ((main, "Main table"), (end, "The other choice of the round")):
            parts.append(f"### {title}: {SELECTIONS[grid.selection]}\n")
            parts.extend(_block(grid, datasets) for datasets in grid.blocks())
    return "\n".join(parts)


def _block(grid: Grid, datasets: list[str]) -> str:
    """Datasets side by side; a framework that sees the whole graph stands in the first column of each."""
    columns = [f" M={clients}" for clients in grid.clients] or [""]
    header = ["", "", *(dataset_title(dataset) + column for dataset in datasets for column in columns)]
    lines = []
    for row, cells in grid.lines(datasets):
        texts = [_cell(cell) for cell in cells]
        if row.whole:
            texts = [text for first in texts for text in [first, *[""] * (grid.span - 1)]]
        lines.append([row.framework if row.ours else "", row.source, *texts])
    return table(header, lines)


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    text = f"**{cell.text()}**" if cell.top else cell.text()
    return text + (" \\*" if cell.significant else "")


def partitions(summary: pd.DataFrame) -> str:
    """The partitions, ours beside the papers'.

    Args:
        summary: as :func:`feddep.reporting.partitions.summarise` gives it.
    """
    header = ["dataset", "M", "", "nodes", "edges", "nodes a client", "edges a client", "missing edges", "share"]
    lines = []
    for row in records(summary):
        spread = "" if row["missing_edges_std"] is None else f" ± {row['missing_edges_std']:.1f}"
        lines.append([dataset_title(row["dataset"]), str(row["clients"]), OURS, *_sizes(row, "", spread)])
        for paper, source in published.PAPERS.items():
            if row[f"{paper}_edges"] is not None:
                lines.append(["", "", source, *_sizes(row, f"{paper}_")])
    return f"# Partitions\n\n{_PARTITION_NOTES}\n{table(header, lines)}"


def _sizes(row: dict, prefix: str, spread: str = "") -> list[str]:
    columns = ("nodes", "edges", "mean_client_nodes", "mean_client_edges", "missing_edges")
    values = [row[prefix + column] for column in columns]
    share = row[f"{prefix}missing_edges"] / row[f"{prefix}edges"] if row[f"{prefix}edges"] else 0.0
    *sizes, missing = [f"{value:.0f}" for value in values]
    return [*sizes, missing + spread, f"{share:.1%}"]


def table(header: list[str], lines: list[list[str]]) -> str:
    """A pipe table whose columns are aligned."""
    widths = [max(3, *(len(line[column]) for line in [header, *lines])) for column in range(len(header))]
    rows = [header, ["-" * width for width in widths], *lines]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in padded)
