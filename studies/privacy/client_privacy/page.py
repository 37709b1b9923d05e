"""The page: all guarantees as a table, and what is worst over the clients of a dataset: of
sampling, and of DP-SGD.
"""

import math
from collections.abc import Callable
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.privacy.accountant import Guarantee
from feddep.reporting import figures
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, ordered, records
from feddep.reporting.labels import place_title
from studies import measuring
from studies.privacy.client_privacy.measure import DELTA

_PLACE = ["setting", "dataset", "clients"]
_BOUNDS = {"example": ("example", ""), "edge": ("edge", "trees")}
_COLUMNS = {
    f"{level}, {times}: {by.upper()}": (*bound, by, "epsilon_one" if times == "one" else "epsilon")
    for level, bound in _BOUNDS.items()
    for times in ("one", "all")
    for by in ("rdp", "pld")
}
_COLUMNS["edge, simple, all: PLD"] = ("edge", "simple", "pld", "epsilon")
"""Of DP-SGD: what is hidden, by which bound and accounting, and the column of its ε."""


def page(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """The table, where what sampling guarantees under any method stands once, and the text."""
    integers = dict.fromkeys(["client", "degree", "roots", "times"], "Int64")
    rows = in_paper_order(tables["guarantees"].drop_duplicates(), by=_PLACE).astype(integers)
    trained = {row["setting"]: row for row in records(tables["settings"])}

    def sections(shown: Callable[[pd.DataFrame], str]) -> str:
        head = (
            "### Setting {setting}: d = {fanout}, L = {layers}, N = {epochs}, B = {batch_size}\n\n"
        )
        blocks = rows.groupby("setting", sort=False)
        return "\n".join(head.format(**trained[name]) + shown(block) for name, block in blocks)

    seeds = ", ".join(map(str, ordered(rows["seed"])))
    text = measuring.text(
        "client_privacy",
        seeds=seeds,
        delta=DELTA,
        sampling=sections(_sampling),
        noise=sections(_noise),
    )
    return {"table.csv": rows, "page.md": text, "figure": figure(rows)}


def figure(rows: pd.DataFrame) -> Figure:
    """DP-SGD's ε of a training node and of an edge, worst over clients: a panel a setting, a row a
    place.
    """
    of = rows[(rows["accounting"] == "pld") & (rows["bound"] != "simple")]
    worst = of.groupby([*_PLACE, "hidden"])["epsilon"].max().unstack()
    example, edge = worst["example"], worst["edge"]
    drawn: dict[str, dict[str, dict[str, Any]]] = {}
    for row in records(in_paper_order(worst.index.to_frame(index=False), _PLACE)):
        panel = drawn.setdefault(f"setting {row['setting']}", {})
        panel[place_title(row["dataset"], row["clients"])] = {
            "of a training node": {"mean": example[*row.values()]},
            "of an edge": {"mean": edge[*row.values()]},
        }
    times = edge / example
    title = f"DP-SGD's ε of an edge is {times.min():.0f} to {times.max():.0f} times that of a node"
    title += "\nWhat noised training guarantees with δ = 1e-5, the worst client of each place"
    return figures.forests(title, drawn, "ε of the whole training", rule=None, log=True)


def weakest(rows: pd.DataFrame) -> pd.DataFrame:
    """The weakest guarantee of neighbour sampling over the clients, of each choice of a node in
    each place.

    The client is that with the largest exact δ, among equals that with the weakest published
    guarantee, which none at all is.

    Returns:
        The published guarantee, with ``_exact`` the exact one.
    """
    published, exact = (rows[rows["accounting"] == each] for each in ("published", "exact"))
    both = published.merge(exact, on=[*_PLACE, "hidden", "client"], suffixes=("", "_exact"))
    by = {
        "log10_rest_one_exact": False,
        "log10_rest_one": False,
        "epsilon": True,
        "log10_rest": False,
    }
    ranked = both.sort_values(list(by), ascending=list(by.values()), kind="stable")
    found = ranked.groupby([*_PLACE, "hidden"]).tail(1)
    # The worst node of a place before the median one.
    return in_paper_order(found.sort_values("hidden", ascending=False, kind="stable"), by=_PLACE)


def _sampling(rows: pd.DataFrame) -> str:
    found = []
    for row in records(weakest(rows)):
        line = {
            "dataset": row["dataset"],
            "clients": row["clients"],
            "node": row["hidden"],
            "D": row["degree"],
        }
        for name, suffix in (("theorem", "_one"), ("theorem, all", "")):
            none = row[f"epsilon{suffix}"] is None
            line[f"{name}: ε"] = "none" if none else md.number(row[f"epsilon{suffix}"])
            line[f"{name}: δ"] = "none" if none else _delta(row[f"log10_rest{suffix}"])
        found.append(
            {
                **line,
                "exact: δ": _delta(row["log10_rest_one_exact"]),
                "exact, all: δ": _delta(row["log10_rest_exact"]),
            }
        )
    return md.shown(pd.DataFrame(found), found[0], [])


def _delta(log10_rest: float) -> str:
    return Guarantee(0.0, log10_rest * math.log(10)).format_delta()


def _noise(rows: pd.DataFrame) -> str:
    found = []
    for (dataset, clients, method), own in rows[rows["mechanism"] == "dpsgd"].groupby(
        [*_PLACE[1:], "method"], sort=False
    ):
        line = {"dataset": dataset, "clients": clients, "method": method, "σ": own["sigma"].iloc[0]}
        line |= {
            "q": _span(own["rate"]),
            "T": _span(own["times"]),
            "k": _span(own["roots"].dropna()),
        }
        worst = own.groupby(["hidden", "bound", "accounting"]).max(numeric_only=True)
        found.append(line | {name: worst.at[key[:3], key[3]] for name, key in _COLUMNS.items()})
    return md.shown(pd.DataFrame(found), found[0], []) if found else ""


def _span(values: pd.Series) -> str:
    """``20 – 30``, over the clients."""
    low, high = md.number(values.min()), md.number(values.max())
    return low if low == high else f"{low} – {high}"
