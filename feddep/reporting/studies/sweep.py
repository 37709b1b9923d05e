"""Kind ``sweep``: accuracy over one or more options, such as FedDEP's Table 3 over C, its Figure 4 over L, FedSage's Figure 3."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from feddep.config import variants
from feddep.reporting import drawing, published
from feddep.reporting import markdown as md
from feddep.reporting.frames import records
from feddep.reporting.labels import distinguishing, method_title
from feddep.reporting.main_table import OURS, Cell
from feddep.reporting.study_data import KEYS, Study, line_name, ordered, panel_title, places, summarise
from feddep.reporting.undertrained import mark

SHOWS = """\
Test accuracy, mean ± sample standard deviation over the seeds, at the round that is best on validation nodes.
**Bold**: of the values in a column that a method can have, the one that is best on validation nodes, which is what a user
would choose; it need not be the best on test nodes. *own*, where it was measured: the same test nodes, each classified by its
owner on its own, possibly mended subgraph. *FedDEP paper*, *FedSage paper*, where it has the same sweep: FedDEP's Table 3,
FedSage's Tables 2 to 4 of Appendix D, as printed.
"""


SHARED = "fedsage_plus_shared"
"""The method that only FedSage's Table 2 of Appendix D has, beside FedSage+ and FedAvg."""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """The summary over seeds, with

    chosen: whether this is the value (of the options of setting and method) with the best mean validation accuracy; the
    first of equals, and false where there is nothing to choose between;
    paper_PAPER_mean, paper_PAPER_std: what that paper prints, if it has a table over the study's only option, or, where
    nothing but the method differs, if the study has FedSage's shared NeighGen; NaN where that table has no such number.
    """
    summary = summarise(study)
    given = [*KEYS, *study.columns("dataset")]  # what a user cannot choose
    groups = summary.groupby(given, sort=False, dropna=False)["validation_mean"]
    summary["chosen"] = False
    summary.loc[groups.idxmax(), "chosen"] = True
    summary["chosen"] &= groups.transform("size") > 1
    return {"table": _beside_papers(study, summary)}


def _beside_papers(study: Study, summary: pd.DataFrame) -> pd.DataFrame:
    """The summary with two more columns for each paper that has the same sweep."""
    match list(study.options.items()):
        case [(option, part)]:
            numbers = published.sweep(option, part)
            values = [md.value(line[option]) for line in records(summary)]
        case [] if SHARED in set(summary["method"]):
            numbers = published.accuracy("appendix_table2").assign(value=None)
            values = [""] * len(summary)
        case _:
            return summary
    numbers = numbers.assign(row=numbers["method"], value=[md.value(line["value"]) for line in records(numbers)])
    beside = summary.assign(row=summary["method"].map(variants.base), value=values)
    keys = ["dataset", "clients", "row", "value"]
    for paper, theirs in numbers.groupby("paper"):
        theirs = published.renamed(theirs[[*keys, "mean", "std"]], str(paper))
        beside = beside.merge(theirs, how="left", on=keys)
    return beside.drop(columns=["row", "value"])


def _papers(table: pd.DataFrame) -> list[str]:
    """The papers that have a number in the table."""
    return [paper for paper in published.PAPERS if f"paper_{paper}_mean" in table and table[f"paper_{paper}_mean"].notna().any()]


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A block a setting and dataset; a line a method and value, a column a number of clients."""
    return md.sections(tables["table"], lambda block: _block(study, block))


def _block(study: Study, block: pd.DataFrame) -> str:
    options, papers = list(study.options), _papers(block)
    columns = sorted({line["clients"] for line in records(block)}, key=lambda clients: clients or 0)
    header = ["", *options, *([""] if papers else []), *("whole graph" if m is None else f"M={m}" for m in columns)]
    lines = []
    short = distinguishing(block["method"])
    for _, points in block.groupby(["method", *options], sort=False, dropna=False):
        cells = {line["clients"]: line for line in records(points)}
        first = next(iter(cells.values()))
        name = [method_title(short[first["method"]]), *md.values(first, options)]
        lines.append([*name, *([OURS] if papers else []), *(_ours(cells.get(m)) for m in columns)])
        for paper in _papers(points):
            lines.append([*([""] * len(name)), published.PAPERS[paper], *(_theirs(cells.get(m), paper) for m in columns)])
    return md.table(header, lines) + _what_variants_share(short)


def _what_variants_share(short: dict[str, str]) -> str:
    """A line a method whose variants all have changes that the table leaves out."""
    shared = {}
    for spelled, told in short.items():
        (name, changes), (_, different) = variants.read(spelled), variants.read(told)
        shared[name] = ", ".join(f"`{key}={md.value(value)}`" for key, value in changes.items() if key not in different)
    return "".join(f"\n{method_title(name)}: {changes}.\n" for name, changes in shared.items() if changes)


def _ours(line: dict[str, Any] | None) -> str:
    if line is None:
        return ""
    number = md.plus_minus(line["mean"], line["std"])
    own = f"; own {line['own_mean']:.4f}" if line.get("own_mean") is not None else ""
    return (f"**{number}**" if line["chosen"] else number) + own + mark(line["undertrained"])


def _theirs(line: dict[str, Any] | None, paper: str) -> str:
    if line is None or line[f"paper_{paper}_mean"] is None:
        return ""
    return Cell(line[f"paper_{paper}_mean"], line[f"paper_{paper}_std"], printed=True).text()


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a setting and dataset: accuracy over the option with the most values, with standard deviations.

    Colours tell numbers of clients apart, where there are several, shapes methods and the other options.  A method
    without the option is a horizontal line.  Where no option is varied, accuracy is drawn over the number of clients.
    """
    table = tables["table"]
    across = max(study.options, key=lambda column: len(study.values(column)), default="clients")
    values = study.values(across) if study.options else ordered(line["clients"] for line in records(table))
    others = [option for option in study.options if option != across]
    short = distinguishing(table["method"])
    lines = [{**line, "name": line_name({**line, "method": short[line["method"]]}, others)} for line in records(table)]
    looks = _looks(lines, across)
    panels, numbers = places(table), ordered(line["clients"] for line in lines)
    same = f", M = {numbers[0]}" if len(numbers) == 1 and across != "clients" else ""
    most, width = (2, 3.4) if len(values) > 1 else (4, 2.0)
    with drawing.style():
        drawn, axes = drawing.tiles(len(panels), most, lambda rows, columns: (0.8 + width * columns, 1.3 + 2.5 * rows))
        for ax, (setting, dataset) in zip(axes.flat, panels, strict=False):
            here = [line for line in lines if (line["setting"], line["dataset"]) == (setting, dataset)]
            curves = [(look, [line for line in here if _curve(line, across) == curve]) for curve, look in looks.items()]
            curves = [(look, points) for look, points in curves if points]
            for k, (look, points) in enumerate(curves):
                _draw(ax, points, across, values, (0.25 if len(values) > 1 else 0.6) * ((k + 0.5) / len(curves) - 0.5), look)
            ax.set_title(panel_title(table, setting, dataset) + same, loc="left")
            ax.set_xticks(range(len(values)), [md.value(value) for value in values])
            ax.set_xlim(-0.5, len(values) - 0.5)
            ax.set_xlabel("number of clients M" if across == "clients" else across.replace("_", " "))
        for ax in axes[:, 0]:
            ax.set_ylabel("test accuracy")
        drawing.head(drawn, study.title, _legend(looks))
    return drawn


Curve = tuple[str, int | None]
"""A curve of a panel: the method with the options that are not on the axis, and the number of clients unless that is."""


def _curve(line: dict[str, Any], across: str) -> Curve:
    return line["name"], None if across == "clients" else line["clients"]


def _looks(lines: list[dict[str, Any]], across: str) -> dict[Curve, dict[str, Any]]:
    """How each curve is drawn: a dash and marker for each name, those that vary first; a colour for each number of clients, or
    for each name where there is one number.
    """
    names = list(dict.fromkeys(line["name"] for line in sorted(lines, key=lambda line: line[across] is None)))
    varying = {line["name"] for line in lines if line[across] is not None}
    numbers = ordered(line["clients"] for line in lines)
    by_name = across == "clients" or len(numbers) < 2
    shades = names if by_name else numbers
    colours: dict[Any, str] = {shade: drawing.colour(k) for k, shade in enumerate(shades)}
    looks = {}
    for name, clients in dict.fromkeys(_curve(line, across) for line in lines):
        k = names.index(name)
        colour = colours.get(name if by_name else clients, drawing.INK)
        marker = drawing.MARKERS[k % len(drawing.MARKERS)] if name in varying else ""
        looks[name, clients] = {"color": colour, "marker": marker, "linestyle": drawing.DASHES[k % len(drawing.DASHES)]}
    return looks


def _legend(looks: dict[Curve, dict[str, Any]]) -> list[Line2D]:
    """Shapes by name and colours by number of clients; or where there is one number or that is on the axis, both by name."""
    numbers = {clients for _, clients in looks if clients is not None}
    if len(numbers) < 2:
        return [drawing.sample(name, **look) for (name, _), look in looks.items()]
    shapes = {name: drawing.sample(name, **{**look, "color": drawing.INK}) for (name, _), look in looks.items()}
    colours = {
        clients: drawing.sample("whole graph" if clients is None else f"M = {clients}", color=look["color"], linestyle="-")
        for (_, clients), look in looks.items()
    }
    return [*shapes.values(), *colours.values()]


def _draw(ax: Axes, points: list[dict[str, Any]], across: str, values: list[Any], offset: float, look: dict[str, Any]) -> None:
    """One curve; the values stand at equal distances."""
    if points[0][across] is None:
        ax.axhline(points[0]["mean"], linewidth=1.1, **look)
        return
    places = [values.index(line[across]) + offset for line in points]
    spreads = [line["std"] or 0.0 for line in points]
    ax.errorbar(places, [line["mean"] for line in points], yerr=spreads, markersize=4, linewidth=1.1, elinewidth=0.8, **look)
