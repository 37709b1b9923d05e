"""The main table as LaTeX, in the layout of the papers' Table 2; it asks for the packages booktabs and xcolor."""

from feddep.reporting.grid import SELECTIONS, Cell, Grid, Row
from feddep.reporting.labels import dataset_title

_SPECIAL = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def escape(text: str) -> str:
    """Text that LaTeX prints as it stands."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def accuracy(best: list[Grid], last: list[Grid]) -> str:
    """One ``table*`` a setting and selection.

    Args:
        best, last: one grid a setting, as :func:`feddep.reporting.grid.grids` gives them for each selection.
    """
    tables = [_table(grid) for pair in zip(best, last, strict=True) for grid in pair]
    return "% \\usepackage{booktabs,xcolor}\n" + "\n".join(tables)


def _table(grid: Grid) -> str:
    caption = (
        f"Node classification, setting {escape(grid.setting)}: {SELECTIONS[grid.selection]}, mean $\\pm$ sample standard "
        "deviation over seeds, above the papers' numbers. Bold: the two best of ours, Global and oracles left aside."
    )
    if grid.selection == "best":
        caption += " $^*$: differs from FedAvg (paired $t$-test, Holm-corrected over the table, $p<0.05$)."
    return "\n".join(
        [
            r"\begin{table*}[t]",
            r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
            f"\\caption{{{caption}}}",
            f"\\label{{tab:accuracy-{grid.setting}-{grid.selection}}}",
            "\n\\medskip\n\n".join(_block(grid, datasets) for datasets in grid.blocks()),
            r"\end{table*}",
            "",
        ]
    )


def _block(grid: Grid, datasets: list[str]) -> str:
    span = grid.span
    lines = [
        f"\\begin{{tabular}}{{ll*{{{span * len(datasets)}}}{{c}}}}",
        r"\toprule",
        _line("", "", *(_spanning(span, escape(dataset_title(dataset))) for dataset in datasets)),
        "".join(f"\\cmidrule(lr){{{3 + span * k}-{2 + span * (k + 1)}}}" for k in range(len(datasets))),
    ]
    if grid.clients:
        lines.append(_line("Framework", "", *(f"$M={clients}$" for _ in datasets for clients in grid.clients)))
    for row, cells in grid.lines(datasets):
        texts = [_spanning(span, _cell(row, cell)) if row.whole else _cell(row, cell) for cell in cells]
        if row.ours:
            lines += [r"\midrule", _line(escape(row.framework), row.source, *texts)]
        else:
            lines.append(_line("", _gray(row.source), *texts))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _line(*cells: str) -> str:
    return " & ".join(cells) + r" \\"


def _spanning(columns: int, text: str) -> str:
    return f"\\multicolumn{{{columns}}}{{c}}{{{text}}}"


def _gray(text: str) -> str:
    return f"\\textcolor{{gray}}{{{text}}}"


def _cell(row: Row, cell: Cell | None) -> str:
    if cell is None:
        return ""
    mean, _, std = cell.text("|").partition("|")
    numbers = f"\\mathbf{{{mean}}}" if cell.top else mean
    spread = f"{{\\pm}}{std}" if std else ""
    star = "^*" if cell.significant else ""
    text = f"${numbers}{spread}{star}$"
    return text if row.ours else _gray(text)
