"""One HTML page with everything on it: no script, no network, no other file."""

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
from feddep.reporting import drawing, provenance_summary, published
from feddep.reporting.frames import records
from feddep.reporting.labels import dataset_title, framework_title, sort_datasets
from feddep.reporting.main_table import MainTable
from feddep.reporting.results import Results
from feddep.utils.checksum_lists import find_mismatch
from feddep.utils.errors import DataError

_ALTERNATIVES = {
    "accuracy": "Test accuracy of each framework, ours beside the papers', with standard deviations.",
    "curves": "Validation accuracy, test accuracy and training loss after each round, with the range over seeds.",
    "partitions": "Number of edges between clients, ours beside the papers'.",
}


def html(results: Results, studies: Mapping[str, Path] | None = None) -> str:
    """The page; a function of the runs' results and provenance, not of when or where it is made.

    Args:
        results: what the main tables show.
        studies: the folders of finished studies by name; each becomes a section, its table folded.

    Raises:
        DataError: if a study's files are missing, or not what was written.
    """
    template = resources.files("feddep.reporting").joinpath("templates", "report.html.jinja").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    federated = results.accuracy["clients"].notna()
    origin = provenance_summary.summarise(results.config, results.finished)
    return environment.from_string(template).render(
        config=results.config,
        datasets=[dataset_title(name) for name in sort_datasets(plan.datasets(results.config))],
        tables=[_table(table, dataset) for table in results.main_tables for dataset in table.datasets],
        comparisons=_titled(results.comparisons),
        traffic=_titled(results.accuracy[federated]),
        partitions=list(_partitions(results.partitions)),
        figures={name: _inline(name, drawing.svg(figure), _ALTERNATIVES[name]) for name, figure in results.figures().items()},
        studies=[_study(name, folder) for name, folder in (studies or {}).items()],
        origin=origin,
        configuration=yaml.safe_dump(origin["configuration"], sort_keys=False, allow_unicode=True),
    )


def _inline(name: str, text: str, label: str) -> Markup:
    """A drawing, SVG, as an element whose ids no other drawing on the page has."""
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", text)
    head, _, body = text.partition(">")
    points = float(re.search(r'width="([\d.]+)pt"', head)[1])  # type: ignore[index]
    head = re.sub(r' (width|height)="[^"]*"', "", head)  # the view box keeps the shape
    # As wide as the page, but its letters neither larger than the text nor too small to read: rather scroll.
    size = f"max-width: {1.3 * points:.0f}pt; min-width: {0.7 * points:.0f}pt"
    return Markup(f'{head} role="img" aria-label="{escape(label)}" style="{size}">{body}')


def _study(name: str, folder: Path) -> dict[str, Any]:
    """A study's title, figure, and table with what it says of itself."""
    if (mistake := find_mismatch(folder / "study.sha256")) is not None:
        raise DataError(f"{mistake}; run the stage study again")
    page, figure = ((folder / file).read_text(encoding="utf-8") for file in ("table.md", "figure.svg"))
    title, _, text = page.partition("\n")
    title = title.removeprefix("# ")
    table = markdown.markdown(text, extensions=["tables"])
    table = table.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
    return {
        "name": name,
        "title": title,
        "figure": _inline(name, figure, title),
        "table": Markup(re.sub(r"(</?)h2>", r"\1h4>", table)),
    }


def _titled(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows with datasets and frameworks called as they are shown."""
    return [
        {**row, "dataset": dataset_title(row["dataset"]), "framework": framework_title(row["framework"])}
        for row in records(table)
    ]


def _table(table: MainTable, dataset: str) -> dict[str, Any]:
    """The rows of a dataset; a cell holds ours under both selections and what the papers print."""
    rows = []
    for row in table.rows:
        places = table.places(row, dataset)
        if any(place in row.cells for place in places):
            cells = [{**row.cells.get(place, {}), "papers": row.papers(place)} for place in places]
            rows.append({"framework": row.title, "whole": row.whole, "cells": cells})
    return {"dataset": dataset_title(dataset), "setting": table.setting, "clients": table.clients, "rows": rows}


def _partitions(summary: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """A row a partition, with the papers' missing edges where they have such a graph."""
    for row in records(summary):
        papers = [(title, row[f"{paper}_missing_edges"]) for paper, title in published.PAPERS.items()]
        known = [(title, int(edges)) for title, edges in papers if edges is not None]
        yield {**row, "dataset": dataset_title(row["dataset"]), "papers": known}
