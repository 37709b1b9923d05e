"""The page: distances from the true distribution, a table a dataset, and as a figure."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.reporting import figures
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import method_title, panel_title
from studies import measuring

PLACE = ["setting", "dataset", "clients"]


def page(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The table, the text and the figure."""
    summary = summarise(tables["label_distributions"])
    text = measuring.text("label_distributions", tables=md.sections(summary, _block))
    return {"table.csv": summary, "page.md": text, "figure": figure(summary)}


def summarise(measured: pd.DataFrame) -> pd.DataFrame:
    """Distance of distributions from the true ones, one row a place and method, datasets in the
    papers' order.

    Returns:
        setting, dataset, clients, method (NA for what clients hold), seeds, mean, std: see the
        notes of the page.
    """
    rows = []
    for key, run in measured.groupby([*PLACE, "method", "seed"], sort=False, dropna=False):
        counts = {
            what: part.pivot(index="number", columns="label", values="nodes")
            for what, part in run.groupby("what")
        }
        of = dict(zip([*PLACE, "method", "seed"], key, strict=True))
        rows.append({**of, "distance": _distance(counts["predicted"], counts["true"])})
        if "held" in counts:
            rows.append(
                {
                    **of,
                    "method": None,
                    "distance": _distance(counts["held"], counts["held"].sum().to_frame().T),
                }
            )
    # Every method of a place has the same clients, whose distance is to count once.
    table = pd.DataFrame(rows).drop_duplicates([*PLACE, "method", "seed"])
    groups = table.groupby([*PLACE, "method"], sort=False, dropna=False)["distance"]
    summary = (
        groups.agg(seeds="size", mean="mean", std="std").reset_index().astype({"clients": "Int64"})
    )
    return in_paper_order(summary, [*PLACE, "method"])


def _distance(counts: pd.DataFrame, truth: pd.DataFrame) -> float:
    """Mean total variation of the rows of ``counts`` from the only row of ``truth``."""
    p, q = (table.to_numpy(dtype=float) for table in (counts, truth))
    return float(0.5 * np.abs(p / p.sum(axis=1, keepdims=True) - q / q.sum()).sum(axis=1).mean())


def _block(block: pd.DataFrame) -> str:
    lines = []
    for line in records(block):
        clients = "whole graph" if line["clients"] is None else str(line["clients"])
        name = "held by clients" if line["method"] is None else method_title(line["method"])
        lines.append([clients, name, md.plus_minus(line["mean"], line["std"])])
    return md.table(["M", "", "distance from the true distribution"], lines)


def figure(summary: pd.DataFrame) -> Figure:
    """Distances of :func:`summarise`: a panel a setting and dataset, a row what clients hold, or a
    method.
    """
    drawn: dict[str, dict[str, Any]] = {}
    for row in records(summary):
        name = "held by clients" if row["method"] is None else method_title(row["method"])
        label = name if row["clients"] is None else f"{name}, M={row['clients']}"
        point = figures.spread(row["mean"], row["std"]) | {"method": row["method"]}
        panel = panel_title(summary, row["setting"], row["dataset"])
        drawn.setdefault(panel, {})[label] = {"": point}
    held, predicted = (
        summary.loc[here, "mean"].max()
        for here in (summary["method"].isna(), summary["method"].notna())
    )
    title = f"Clients' labels are {held:.0%} off the whole graph's, predicted ones at most "
    title += f"{predicted:.0%}\nLabels that clients hold, and that models predict for test nodes"
    label = "total variation from the true distribution, mean and standard deviation"
    return figures.forests(title, drawn, label)
