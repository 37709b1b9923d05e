"""One HTML page with everything on it: no network, no other file; a script sorts and filters its tables."""

import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import markdown
import pandas as pd
import yaml
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from feddep.experiment import plan
from feddep.reporting import drawing, overview, provenance_summary, published
from feddep.reporting.frames import records
from feddep.reporting.labels import dataset_title, method_title, sort_datasets
from feddep.reporting.main_table import SIGNIFICANT, MainTable
from feddep.reporting.results import Results
from feddep.utils.checksum_lists import find_mismatch
from feddep.utils.errors import DataError

_LETTERS = "<!-- letters -->"
"""Where the template has the outlines of letters."""
_ALTERNATIVES = {
    "accuracy": "Test accuracy of each method, ours beside the papers'.",
    "curves": "Test accuracy after each round, with the range over seeds.",
    "partitions": "Number of edges between clients, ours beside the papers'.",
    "ranks": "Average ranks of methods over datasets; a bar joins those that cannot be told apart.",
}


def html(results: Results, studies: Mapping[str, Path] | None = None) -> str:
    """The page; a function of the runs' results and provenance, not of when or where it is made.

    Args:
        results: what the main tables show.
        studies: the folders of finished studies by name; each becomes a folded section.

    Raises:
        DataError: if a study's files are missing, or not what was written.
    """
    template, script = (
        resources.files("feddep.reporting").joinpath("templates", name).read_text(encoding="utf-8")
        for name in ("report.html.jinja", "tables.js")
    )
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    federated = results.accuracy["clients"].notna()
    origin = provenance_summary.summarise(results.config, results.finished)
    drawn = results.figures() | results.rank_figures()
    figures = {name: _inline(name, drawing.svg(each), _alternative(name)) for name, each in drawn.items()}
    page = environment.from_string(template).render(
        overview=overview.sentences(results),
        significant=int((results.comparisons["p_holm"] < SIGNIFICANT).sum()),
        spread=bool((results.accuracy["seeds"] > 1).any()),
        script=Markup(script),
        config=results.config,
        datasets=[dataset_title(name) for name in sort_datasets(plan.datasets(results.config))],
        tables=[_table(table, dataset) for table in results.main_tables for dataset in table.datasets],
        comparisons=_titled(results.comparisons),
        traffic=_titled(results.accuracy[federated]),
        partitions=list(_partitions(results.partitions)),
        figures=figures,
        studies=[_study(name, folder) for name, folder in (studies or {}).items()],
        origin=origin,
        configuration=yaml.safe_dump(origin["configuration"], sort_keys=False, allow_unicode=True),
    )
    return _share_letters(page)


def _alternative(name: str) -> str:
    kind, _, setting = name.partition("_")
    return _ALTERNATIVES[kind] + (f" TrainingConfig {setting}." if setting else "")


def _share_letters(page: str) -> str:
    """The page with one outline of each letter, before all drawings, in place of one a drawing, and with short names for them."""
    outlines: dict[str, str] = {}

    def take(outline: re.Match[str]) -> str:
        outlines.setdefault(outline[1], f'<path id="l{len(outlines)}"{outline[2]}>')
        return ""

    page = re.sub(r'<path id="(DejaVu[^"]*)"([^>]*/)>\n?', take, page)
    names = {name: f"l{number}" for number, name in enumerate(outlines)}
    page = re.sub(r'(?<=href="#)DejaVu[^"]*', lambda name: names[name[0]], page)
    page = re.sub(r'(<use href="#l\d+") transform="translate\(([\d.-]+) 0\)"/>', r'\1 x="\2"/>', page)
    page = re.sub(r"<defs>\s*</defs>\n?", "", page)
    return page.replace(_LETTERS, "\n".join(outlines.values()), 1)


def _inline(name: str, text: str, label: str) -> Markup:
    """A drawing, SVG, as an element whose ids no other drawing on the page has."""
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    name = re.sub(r"[^A-Za-z0-9_-]", "-", name)
    text = re.sub(r'(id="|href="#|url\(#)(?!DejaVu)', rf"\g<1>{name}-", text)  # letters are the same in all
    used = set(re.findall(r'(?:href="|url\()#([^")]*)', text))
    text = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used or "DejaVu" in found[1] else "", text)
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"\s*\n|(?<=[MLQCz]) ", "", path[0]), text).replace("xlink:href=", "href=")
    head, _, body = text.partition(">")
    points = float(re.search(r'width="([\d.]+)pt"', head)[1])  # type: ignore[index]
    head = re.sub(r' (width|height)="[^"]*"', "", head)  # the view box keeps the shape
    # As wide as the page, but its letters no larger than the text; where they are too small to read, a click makes it larger.
    size = f"max-width: {1.2 * points:.0f}pt; --readable: {points:.0f}pt"
    return Markup(f'{head} role="img" aria-label="{escape(label)}" style="{size}">{body}')


def _study(name: str, folder: Path) -> dict[str, Any]:
    """A study's title, figure, and table with what it says of itself."""
    if (mistake := find_mismatch(folder / "study.sha256")) is not None:
        raise DataError(f"{mistake}; run the stage study again")
    page, figure = ((folder / file).read_text(encoding="utf-8") for file in ("table.md", "figure.svg"))
    title, _, text = page.partition("\n")
    title = title.removeprefix("# ")
    table = markdown.markdown(text, extensions=["tables"])
    table = table.replace("<table>", '<div class="scroll"><table class="data">').replace("</table>", "</table></div>")
    return {
        "name": name,
        "title": title,
        "figure": _inline(name, figure, title),
        "table": Markup(re.sub(r"(</?)h2>", r"\1h4>", table)),
    }


def _titled(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows with datasets and methods called as they are shown."""
    return [{**row, "dataset": dataset_title(row["dataset"]), "method": method_title(row["method"])} for row in records(table)]


def _table(table: MainTable, dataset: str) -> dict[str, Any]:
    """The rows of a dataset; a cell holds ours under both selections and what the papers print."""
    rows = []
    for row in table.rows:
        places = table.places(row, dataset)
        if any(place in row.cells for place in places):
            cells = [{**row.cells.get(place, {}), "papers": row.papers(place)} for place in places]
            rows.append({"method": row.title, "whole": row.whole, "cells": cells})
    return {"dataset": dataset_title(dataset), "setting": table.setting, "clients": table.clients, "rows": rows}


def _partitions(summary: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """A row a partition, with the papers' missing edges where they have such a graph."""
    for row in records(summary):
        papers = [(title, row[f"{paper}_missing_edges"]) for paper, title in published.PAPERS.items()]
        known = [(title, int(edges)) for title, edges in papers if edges is not None]
        yield {**row, "dataset": dataset_title(row["dataset"]), "papers": known}
