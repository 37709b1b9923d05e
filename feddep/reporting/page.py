"""One HTML page with everything on it: no script, no network, no other file."""

import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from feddep.reporting import figures, provenance, published
from feddep.reporting.findings import Findings
from feddep.reporting.frames import records
from feddep.reporting.grid import Grid
from feddep.reporting.labels import dataset_title, framework_title, sort_datasets

_ALTERNATIVES = {
    "accuracy": "Test accuracy of each framework, ours beside the papers', with standard deviations.",
    "curves": "Validation accuracy, test accuracy and training loss after each round, with the range over seeds.",
    "partitions": "Number of edges between clients, ours beside the papers'.",
}


def html(findings: Findings) -> str:
    """The page; a function of the runs' results and provenance, not of when or where it is made."""
    template = resources.files("feddep.reporting").joinpath("templates", "report.html.jinja").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    federated = findings.accuracy["clients"].notna()
    origin = provenance.summarise(findings.config, findings.finished)
    return environment.from_string(template).render(
        config=findings.config,
        datasets=[dataset_title(name) for name in sort_datasets(findings.config["datasets"])],
        tables=list(_tables(findings)),
        comparisons=_titled(findings.comparisons),
        traffic=_titled(findings.accuracy[federated]),
        partitions=list(_partitions(findings.partitions)),
        figures={name: _inline(name, figure) for name, figure in figures.all_figures(findings)},
        origin=origin,
        configuration=yaml.safe_dump(origin["configuration"], sort_keys=False, allow_unicode=True),
    )


def _inline(name: str, figure: Figure) -> Markup:
    """The figure as an SVG element whose ids no other figure on the page has."""
    text = figures.svg(figure)
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", text)
    head, _, body = text.partition(">")
    points = float(re.search(r'width="([\d.]+)pt"', head)[1])  # type: ignore[index]
    head = re.sub(r' (width|height)="[^"]*"', "", head)  # the view box keeps the shape
    # As wide as the page, but its letters neither larger than the text nor too small to read: rather scroll.
    size = f"max-width: {1.3 * points:.0f}pt; min-width: {0.7 * points:.0f}pt"
    return Markup(f'{head} role="img" aria-label="{_ALTERNATIVES[name]}" style="{size}">{body}')


def _titled(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows with datasets and frameworks called as they are shown."""
    return [
        {**row, "dataset": dataset_title(row["dataset"]), "framework": framework_title(row["framework"])}
        for row in records(table)
    ]


def _tables(findings: Findings) -> Iterator[dict[str, Any]]:
    """One table a setting and dataset."""
    for best, last in zip(findings.grids("best"), findings.grids("last"), strict=True):
        for dataset in best.datasets:
            rows = _rows(best, last, dataset)
            yield {"dataset": dataset_title(dataset), "setting": best.setting, "clients": best.clients, "rows": rows}


def _rows(best: Grid, last: Grid, dataset: str) -> list[dict[str, Any]]:
    """A row a framework; a cell holds ours under both selections and what the papers print."""
    rows: list[dict[str, Any]] = []
    for (row, cells), (_, ends) in zip(best.lines([dataset]), last.lines([dataset]), strict=True):
        if row.ours:
            both: list[dict[str, Any]] = [
                {"ours": cell, "last": end, "papers": []} for cell, end in zip(cells, ends, strict=True)
            ]
            rows.append({"framework": row.framework, "whole": row.whole, "cells": both})
            continue
        for entry, cell in zip(rows[-1]["cells"], cells, strict=True):
            if cell is not None:
                entry["papers"].append((row.source, cell))
    return rows


def _partitions(summary: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """A row a partition, with the papers' missing edges where they have such a graph."""
    for row in records(summary):
        papers = [(title, row[f"{paper}_missing_edges"]) for paper, title in published.PAPERS.items()]
        known = [(title, int(edges)) for title, edges in papers if edges is not None]
        yield {**row, "dataset": dataset_title(row["dataset"]), "papers": known}
