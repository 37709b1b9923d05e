"""The leaderboard's table: in Markdown for the repository; in HTML, with more columns, for the
site, where ``sortable.js`` sorts it and chooses among its rows and columns.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from cards import cards
from written import number, signed, slug

from feddep.config import variants
from feddep.experiment import plan
from feddep.judging import rows as submitted
from feddep.judging.judge import USES
from feddep.methods import registry
from feddep.methods.method import CROSS_CLIENT_EDGES, ORACLE
from feddep.reporting import statistics
from feddep.reporting.frames import records
from feddep.reporting.labels import dataset_title, method_title

STUDIES = {
    "GCN": ("field_pooled", ["field_tuned", "field_graphs"]),
    "GraphSAGE": ("field_sage_pooled", ["field_sage"]),
    "its choice": ("field_generated_pooled", ["field_generated"]),
}
"""Of each encoder the study over graphs, and the studies on each graph that it is of."""
FAMILIES = {
    "citations": ["cora", "citeseer", "pubmed", "msacademic"],
    "purchases": ["amazon_photo", "amazon_computers"],
    "no homophily": ["chameleon_filtered", "squirrel_filtered", "actor", "minesweeper", "tolokers"],
    "natural clients": ["webkb", "citation_sources", "twitch", "airports"],
}
"""The graphs whose columns are shown together."""
SEES = {
    "whole graph in one place": "whole graph",
    CROSS_CLIENT_EDGES: "edges across clients",
    ORACLE: "true neighbours",
}
"""What a method with an assumption sees of the graph; others see the client's own subgraph."""
LEVELS = {"worst_client": "worst client", "macro_f1": "macro-F1"}
"""Columns of tables that are compared as accuracies are."""
COSTS = ["bytes", "seconds"]
WIDTH = 120
"""Pixels of a plot, of 0.001 each; what is beyond is drawn at its edge."""
FIRST = '<th>method</th><th data-filter="">encoder</th><th>gain</th><th>verdict</th>'
LAST = (
    '<th data-filter="">grade</th><th data-filter="">sees</th><th data-filter="">beyond FedAvg</th>'
)
"""The columns that are always shown; those with ``data-filter`` choose among rows."""
POOLED = "over graphs"
"""The columns that are shown in place of those of graphs."""
SUBMISSIONS = Path(__file__).resolve().parent.parent / "submissions"
Row = dict[str, Any]


def plain(read: Callable[[str], pd.DataFrame], submissions: Path = SUBMISSIONS) -> str:
    """The table in Markdown: gains over graphs alone; arguments are those of :func:`html`."""
    lines = [["method", "encoder", "gain", "verdict", "graphs"], ["---"] * 5]
    for encoder in STUDIES:
        lines += [
            [
                f"[{row['title']}]({row['link']})",
                encoder,
                signed(row["gain"]) + (f" {_interval(row)}" if row["low"] is not None else ""),
                row["verdict"] or "–",
                number(row["graphs"], 0),
            ]
            for row in _rows(encoder, read, submissions)
        ]
    return "\n".join(f"|{'|'.join(cells)}|" for cells in lines)


def html(read: Callable[[str], pd.DataFrame], submissions: Path = SUBMISSIONS) -> str:
    """The table in HTML: a row an encoder and method, the largest gain of an encoder first.

    Columns of graphs say of what family, in the attribute ``data-columns``; cells with a number
    have it in ``data-order``, with all digits.

    Args:
        read: gives a table by its name.
        submissions: the folder of the rows that others submitted.

    Raises:
        LookupError: if a graph is in no family.
    """
    every = pd.concat([_recorded(read, encoder) for encoder in STUDIES])
    choices = pd.concat([read(f"{study}/choices") for study in every["study"].unique()])
    by_area = set(choices.loc[choices["chosen_setting"].str.contains("roc_auc"), "dataset"])
    families = {name: family for family, names in FAMILIES.items() for name in names}
    bases = {each: variants.base(each) for each in every["dataset"].unique()}
    if unknown := set(bases.values()) - set(families):
        raise LookupError(f"FAMILIES in docs/board.py lacks {', '.join(sorted(unknown))}")
    divisions = sorted(bases, key=lambda each: list(families).index(bases[each]))
    graphs = {each: families[bases[each]] for each in divisions}
    levels = [name for name in LEVELS if every[name].notna().any()]
    heads = ["graphs", f"on each, ±{WIDTH / 2000:g}", plan.ELSEWHERE]
    heads += [*map(LEVELS.get, levels), *COSTS]
    columns = [(head, POOLED) for head in heads]
    columns += [(_title(each, each in by_area), family) for each, family in graphs.items()]
    head = "".join(f'<th data-columns="{shown}">{title}</th>' for title, shown in columns)
    body = "\n".join(
        f"<tr>{_cells(row, encoder, graphs, levels)}</tr>"
        for encoder in STUDIES
        for row in _rows(encoder, read, submissions)
    )
    head = f"<thead><tr>{FIRST}{head}{LAST}</tr></thead>"
    return f'<table class="rows">\n{head}\n<tbody>\n{body}\n</tbody>\n</table>'


def _recorded(read: Callable[[str], pd.DataFrame], encoder: str) -> pd.DataFrame:
    """The tables of the studies on each graph of an encoder, with the study's name."""
    table = pd.concat([read(name).assign(study=name) for name in STUDIES[encoder][1]])
    return table[table["configuration"] == plan.HERE] if "configuration" in table else table


def _title(division: str, by_area: bool) -> str:
    """Such as ``Cora, METIS`` or ``Tolokers, AUC``."""
    marks = ", METIS" * ("partition=metis" in division) + ", AUC" * by_area
    return dataset_title(variants.base(division)) + marks


def _rows(encoder: str, read: Callable[[str], pd.DataFrame], submissions: Path) -> list[Row]:
    """The rows of an encoder, the largest gain first, unknown ones last.

    Returns:
        Of each method its title, link, grade, what it sees and assumes beyond FedAvg; gain, low,
        high, verdict and number of graphs of the study over graphs; ``elsewhere``, the gain out of
        the box; ``gains``, the mean differences of ``LEVELS`` on the same graphs; ``costs`` as
        multiples of FedAvg's, medians over divisions; and ``on`` each division the row of its
        study.
    """
    table = _recorded(read, encoder)
    rows = _own(table, read(STUDIES[encoder][0]))
    rows += _submitted(table, encoder, read("submissions"), submissions)
    return sorted(rows, key=lambda row: math.inf if row["gain"] is None else -row["gain"])


def _own(table: pd.DataFrame, pooled: pd.DataFrame) -> list[Row]:
    """The rows of an encoder that are recorded here."""
    files = {method.name: card.file for card in cards() for method in card.methods}
    own = {name: of.set_index("dataset", drop=False) for name, of in table.groupby("method")}
    reference = table["reference"].iloc[0]
    here, elsewhere = (
        pooled[pooled["configuration"] == configuration].set_index("method").reindex(list(own))
        for configuration in (plan.HERE, plan.ELSEWHERE)
    )
    over_graphs = here.assign(elsewhere=elsewhere["mean_difference"])
    over_graphs.loc[reference, ["mean_difference", "verdict"]] = 0.0, "reference"
    rows = []
    for over in records(over_graphs.reset_index()):
        of, assumes = own[over["method"]], registry.find(over["method"]).assumes
        sound = of[statistics.flaws(of) == ""]
        gains = sound[[*LEVELS]] - own[reference].loc[sound.index, [*LEVELS]]
        costs = of[COSTS] / own["fedavg"].loc[of.index, COSTS]
        rows.append(
            {
                **{key: over[key] for key in ("low", "high", "verdict", "graphs", "elsewhere")},
                "title": method_title(over["method"]),
                "link": f"methods/{files[over['method']]}.md",
                "grade": "recorded",
                "assumes": assumes,
                "gain": over["mean_difference"],
                "gains": gains.groupby(variants.base).mean().mean(),
                "costs": costs.median(),
                "on": {row["dataset"]: row for row in records(of)},
            }
        )
    return rows


def _submitted(table: pd.DataFrame, encoder: str, grades: pd.DataFrame, folder: Path) -> list[Row]:
    """The same of the submitted rows of an encoder, which say of themselves what they have.

    Args:
        table: the recorded rows of the encoder.
        encoder: its name.
        grades: what ``feddep submit --record`` wrote; of a row that has changed since, nothing is
            known.
        folder: of the submissions.
    """
    pooled, studies = STUDIES[encoder]
    rows = []
    for file in sorted(folder.glob(f"*/{submitted.ROW}")):
        row = submitted.read(file)
        named = {pooled: studies}.get(row.protocol["study"], [row.protocol["study"]])
        beside = table[table["study"].isin(named)]
        if beside.empty:
            continue
        first = beside.groupby(beside["dataset"].map(variants.base), sort=False).first()
        bases = {name: of.set_index("dataset") for name, of in beside.groupby("method")}
        over = row.verdicts.get("over_graphs", {})
        on, gains, costs = {}, [], []
        for graph, claim in row.claims.items():
            place, verdict = first.loc[graph, "dataset"], row.verdicts.get(graph, {})
            on[place] = {
                **{"dataset": place, "study": first.loc[graph, "study"], "mean": claim["test"]},
                **{key: verdict.get(key) for key in ("mean_difference", "verdict")},
            }
            of = pd.DataFrame(row.runs.get(graph, [])).reindex(columns=[*LEVELS, *COSTS]).mean()
            if verdict.get("verdict") not in statistics.FLAWS:
                base = bases[beside["reference"].iloc[0]].loc[place, [*LEVELS]]
                gains.append(of[[*LEVELS]] - base)
            costs.append(of[COSTS] / bases["fedavg"].loc[place, COSTS])
        known = grades[grades["row"] == hashlib.sha256(file.read_bytes()).hexdigest()]["grade"]
        rows.append(
            {
                **{key: over.get(key) for key in ("low", "high", "verdict", "graphs")},
                "elsewhere": None,
                "title": row.method.get("title", row.method["name"]),
                "link": f"../submissions/{file.parent.name}/{submitted.ROW}",
                "grade": ", ".join(known.unique()) or "claimed",
                "assumes": tuple(USES[each] for each in row.uses_beyond),
                "gain": over.get("mean_difference"),
                "gains": pd.DataFrame(gains, columns=[*LEVELS], dtype=float).mean(),
                "costs": pd.DataFrame(costs, columns=COSTS, dtype=float).median(),
                "on": on,
            }
        )
    return rows


def _cells(row: Row, encoder: str, graphs: Mapping[str, str], levels: list[str]) -> str:
    """The cells of a row; ``graphs`` are the divisions with their families."""
    assumes = row["assumes"]
    sees = next((words for each, words in SEES.items() if each in assumes), "own subgraph")
    gain = signed(row["gain"])
    if row["low"] is not None:
        gain += f" <small>{_interval(row)}</small>"
    on = [row["on"].get(division) for division in graphs]
    return "".join(
        [
            f'<th scope="row"><a href="{row["link"]}">{escape(row["title"])}</a></th>',
            _cell(encoder),
            _cell(gain, row["gain"]),
            _cell(row["verdict"] or "–"),
            _cell(number(row["graphs"], 0), row["graphs"], POOLED),
            f'<td data-columns="{POOLED}">{_plot(on)}</td>',
            *(
                _cell(signed(value), value, POOLED)
                for value in [row["elsewhere"], *row["gains"][levels]]
            ),
            *(_cell(_times(value), value, POOLED) for value in row["costs"]),
            *(_on_graph(of, family) for of, family in zip(on, graphs.values(), strict=True)),
            _cell(row["grade"]),
            _cell(sees),
            _cell(escape("; ".join(assumes)) or "–"),
        ]
    )


def _interval(row: Row) -> str:
    return f"[{signed(row['low'])}, {signed(row['high'])}]"


def _times(value: float) -> str:
    return "–" if pd.isna(value) else f"{number(value, 2)}×"


def _on_graph(of: Row | None, family: str) -> str:
    """The accuracy on a division, which leads to its study, with the gain and its verdict."""
    if of is None:
        return _cell("–", None, family)
    page = f"../results/{of['study']}/page.md#{slug(dataset_title(of['dataset']))}"
    text = f'<a href="{page}">{number(of["mean"])}</a>'
    if of["mean_difference"] is not None:
        text += f" <small>{signed(of['mean_difference'])} {of['verdict']}</small>"
    return _cell(text, of["mean"], family)


def _cell(text: str, value: float | None = None, shown: str = "") -> str:
    """A cell, with the number that it is sorted by, and which columns it is shown with."""
    order = "" if value is None or pd.isna(value) else f' data-order="{value:g}"'
    columns = f' data-columns="{shown}"' if shown else ""
    return f"<td{columns}{order}>{text}</td>"


def _plot(on: list[Row | None]) -> str:
    """The gains of a method as SVG, a point a division from top to bottom: dark where it is better
    or worse, none where most runs have a flaw.

    Args:
        on: of each division the method's row of the table, if there is one.
    """
    points = [
        (row["mean_difference"], lane, row["verdict"] in ("better", "worse"))
        for lane, row in enumerate(on)
        if row and row["mean_difference"] is not None and row["verdict"] not in statistics.FLAWS
    ]
    if not points:
        return ""
    paths = ""
    for decided in (False, True):
        marks = [
            f"M{min(max(WIDTH / 2 + 1000 * gain, 3), WIDTH - 3):.0f} {2 + 2 * lane}h0"
            for gain, lane, sure in points
            if sure == decided
        ]
        paths += f'<path class="{"sure" if decided else "unsure"}" d="{"".join(marks)}"/>'
    height = 2 * len(on) + 2
    label = f"{len(points)} gains from {signed(min(points)[0])} to {signed(max(points)[0])}"
    return (
        f'<svg role="img" aria-label="{label}" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}">'
        f'<path class="zero" d="M{WIDTH // 2} 0v{height}"/>{paths}</svg>'
    )
