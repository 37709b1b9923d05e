"""The page: the formulas of Table 1 beside the measured numbers, the measured numbers of each
client.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.reporting import figures
from feddep.reporting import markdown as md
from feddep.reporting.labels import dataset_title, method_title
from feddep.utils.csv_files import csv_text
from studies import measuring
from studies.feddep.overhead.measure import BYTES, DIGITS

_COLUMNS = {
    "operations": "operations, of a node in an update",
    "bytes_epoch": "bytes, of a node in an epoch",
    "bytes_total": "bytes in all, of a {of}",
}
"""What Table 1 has; its headings are comp., comm./epoch and total comm."""


def page(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The table, with all its digits, and the text."""
    rows = tables["overhead"]
    first = ["dataset", "clients", "setting", "seed", "method"]
    ordered = rows[[*first, *(column for column in rows.columns if column not in first)]]
    run = rows.iloc[0]
    text = measuring.text(
        "overhead",
        title=f"{dataset_title(run['dataset'])}, M = {run['clients']}, setting "
        f"{run['setting']}, seed {run['seed']}",
        bytes=BYTES,
        formulas=_formulas(rows),
        methods=set(map(variants.base, rows["method"])),
        clients=_clients(rows),
    )
    return {
        "table.csv": csv_text(ordered, digits=DIGITS),
        "page.md": text,
        "figure": figure(rows),
    }


def figure(rows: pd.DataFrame) -> Figure:
    """Measured costs over what the formulas say, a row a method and cost."""
    shown = rows[(rows["client"] == "all") & rows["quantity"].isin(list(_COLUMNS))]
    shown = shown[(shown["paper_value"] > 0) & (shown["ours_value"] > 0)]
    found = {
        "the paper's formula": shown["measured"] / shown["paper_value"],
        "ours": shown["measured"] / shown["ours_value"],
    }
    labels = [
        f"{method_title(line['method'])}: {_COLUMNS[line['quantity']].format(of=line['of'])}"
        for line in shown.to_dict("records")
    ]
    drawn = {
        label: {name: {"mean": ratios.iloc[k]} for name, ratios in found.items()}
        for k, label in enumerate(labels)
    }
    off, ours = (np.exp(np.abs(np.log(ratios)).max()) for ratios in found.values())
    title = f"The paper's formulas are off by up to {off:,.0f} times, ours by {ours:.1f} times\n"
    return figures.forests(
        f"{title}Costs of training generators, Table 1 of FedDEP",
        {"": drawn},
        "measured cost over that of the formula",
        rule=1.0,
        log=True,
    )


def _formulas(rows: pd.DataFrame) -> str:
    header = ["", "", "paper", "= P", "ours", "= O", "measured", "measured / P", "measured / O"]
    lines = []
    for line in rows[(rows["client"] == "all") & rows["quantity"].isin(list(_COLUMNS))].to_dict(
        "records"
    ):
        measured, paper, ours = line["measured"], line["paper_value"], line["ours_value"]
        formulas = [line["paper"], _number(paper), line["ours"], _number(ours)]
        ratios = [f"{measured / value:.3g}" if value else "" for value in (paper, ours)]
        name = [method_title(line["method"]), _COLUMNS[line["quantity"]].format(of=line["of"])]
        # A bar is the border of a cell in Markdown.
        lines.append(
            [text.replace("|", r"\|") for text in (*name, *formulas, _number(measured), *ratios)]
        )
    return md.table(header, _without_repetition(lines))


def _clients(rows: pd.DataFrame) -> str:
    header = ["", "client", "neighbours generated", "operations", "of all"]
    lines = []
    for (method, client), cells in rows.groupby(["method", "client"], sort=False):
        of = dict(zip(cells["quantity"], cells["measured"], strict=True))
        share = f"{of['operations'] / of['all_operations']:.1%}"
        lines.append(
            [
                method_title(str(method)),
                str(client),
                f"{of['generated']:.2f}",
                _number(of["operations"]),
                share,
            ]
        )
    return md.table(header, _without_repetition(lines))


def _without_repetition(lines: list[list[str]]) -> list[list[str]]:
    """Without the name of a method where it is that of the line before."""
    before = [None, *(line[0] for line in lines)]
    return [
        ["" if line[0] == last else line[0], *line[1:]]
        for line, last in zip(lines, before, strict=False)
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}"
