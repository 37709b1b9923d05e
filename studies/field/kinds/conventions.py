"""Kind ``conventions``: the same methods under the choices that papers seldom print, before and
after the local steps.

Beside them stands what papers print for the same method, graph and number of clients
(``studies/field/published/field.csv``).
"""

import json
from collections.abc import Iterable
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.config.loading import STUDIES
from feddep.reporting import drawing
from feddep.reporting import markdown as md
from feddep.reporting.drawing import sample
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import (
    dataset_title,
    in_words,
    method_title,
    sort_datasets,
    sort_methods,
)
from feddep.reporting.load import Study

SHOWS = """\
Accuracy of the test nodes, each classified by its owner on its own subgraph, pooled
over clients: with the model that the client receives (*before* its local steps) and with the one
that it has after them, each at the round whose models are best on all clients' validation nodes;
*std*: sample standard deviation over seeds. *Unweighted*: the mean over clients. *Published*: the
least and the greatest number that papers print for the method on that graph with 10 clients,
20/40/40, Louvain or METIS, and how many there are; their encoders, local epochs and evaluations
differ.
"""
_WHEN = ("before", "after")
ACCURACIES = [f"local_{when}" for when in _WHEN]


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """A row a point of the study.

    Returns:
        The study's options, dataset, clients and method; seeds; of each of before and after
        local_WHEN, its mean, std_WHEN, and unweighted_WHEN, the mean over clients; global, accuracy
        of the server's model on the global graph; and published_low, published_high and published,
        the number of published accuracies.
    """
    raw = study.recorded
    points = study.points[["setting", "dataset", "clients", "method", *study.options]]
    of_clients = [np.nanmean(json.loads(pairs), axis=0) for pairs in raw["client_accuracies"]]
    accuracies = pd.DataFrame(
        of_clients, columns=[f"unweighted_{when}" for when in _WHEN], index=raw.index
    )
    columns = {
        f"{name}_{when}": raw[f"local_{when}"] for when in _WHEN for name in ("local", "std")
    }
    literature = _literature()
    divided = [
        run.partition.options["method"] in set(literature["partition"]) for run in study.plan
    ]
    points = points.assign(
        **columns, **accuracies, **{"global": raw["test"]}, seeds=raw["seed"], _divided=divided
    )
    keys = ["setting", "dataset", "clients", "method", *study.options]
    means = [
        name
        for name in points
        if name not in (*keys, "seeds", "std_before", "std_after", "_divided")
    ]
    how = {
        "seeds": "size",
        "_divided": "first",
        **dict.fromkeys(means, "mean"),
        "std_before": "std",
        "std_after": "std",
    }
    table = points.groupby(keys, sort=False, dropna=False).agg(how).reset_index()
    spread = literature.groupby(["dataset", "method"])["mean"].agg(["min", "max", "size"])
    spread = spread.rename(
        columns={"min": "published_low", "max": "published_high", "size": "published"}
    ).reset_index()
    table = table.assign(
        of=table["dataset"].map(variants.base), which=table["method"].map(variants.base)
    )
    table = table.merge(
        spread.rename(columns={"dataset": "of", "method": "which"}), how="left", on=["of", "which"]
    )
    # Of another partition.
    table.loc[~table["_divided"], ["published_low", "published_high", "published"]] = np.nan
    table = in_paper_order(
        table.drop(columns=["of", "which", "_divided"]), ["dataset", "method", *study.options]
    )
    return {"table": table.astype({"published": "Int64"})}


def _literature() -> pd.DataFrame:
    """Accuracies of clients' own test nodes with 10 clients by Louvain or METIS, 20/40/40."""
    return pd.read_csv(STUDIES / "field" / "published" / "field.csv")


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A section a dataset."""
    columns = [
        "method",
        *study.columns("dataset", "setting", "method"),
        "local_before",
        "std_before",
        "local_after",
        "std_after",
    ]
    columns += [
        "unweighted_before",
        "unweighted_after",
        "global",
        "published_low",
        "published_high",
        "published",
        "seeds",
    ]
    return md.shown(tables["table"], columns, ["dataset"])


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a dataset, a line a method, or where there are many choices a choice of a method:
    published numbers in grey, where all of ours are of partitions like theirs, and ours, a colour
    a choice, hollow before, full after.
    """
    table, literature = tables["table"], _literature()
    table = table.assign(
        graph=table["dataset"].map(variants.base),
        name=table["method"].map(variants.base),
        choice=choices(table, study.options),
    )
    names, told = sort_methods(table["name"]), list(dict.fromkeys(table["choice"]))
    table = table.sort_values("name", key=lambda column: column.map(names.index), kind="stable")
    # More choices than colours: each has a line of its own, and all look alike.
    apart = len(told) > len(drawing.COLOURS)
    table["line"] = table["name"].map(method_title) + (", " + table["choice"] if apart else "")
    lines = dict(zip(table["line"], table["name"], strict=True))
    looks = drawing.looks(dict.fromkeys(told[:1] if apart else told))
    datasets, drawn = sort_datasets(table["graph"]), 0
    with drawing.style():
        high = 0.27 if apart else 0.3
        figure, axes = drawing.tiles(list(map(dataset_title, datasets)), 0.3 + high * len(lines))
        for ax, dataset in zip(axes.flat, datasets, strict=False):
            for place, (line, name) in enumerate(lines.items()):
                rows = records(table[(table["graph"] == dataset) & (table["line"] == line)])
                of = literature[(literature["dataset"] == dataset) & (literature["method"] == name)]
                of = of if all(pd.notna(row["published"]) for row in rows) else of[:0]
                ax.plot(of["mean"], [place - 0.22] * len(of), "|", color="#888888", markersize=9)
                drawn += len(of)
                for number, row in enumerate(rows):
                    look = {**looks.get(row["choice"], looks[told[0]]), "linestyle": "none"}
                    for when, face in (("before", "white"), ("after", look["color"])):
                        at = (row[f"local_{when}"], place + 0.1 * number - 0.05)
                        ax.plot(*at, **look, markerfacecolor=face, markersize=4.5)
            labels = [fill(in_words(line), 36) for line in lines]
            ax.set_yticks(range(len(lines)), labels if ax in axes[:, 0] else [])
            ax.set_ylim(len(lines) - 0.4, -0.6)
            ax.locator_params(axis="x", nbins=6 // axes.shape[1])
        handles = (
            [sample("published", color="#888888", marker="|", linestyle="none")] if drawn else []
        )
        if not apart:
            handles += [sample(each, **{**of, "linestyle": "none"}) for each, of in looks.items()]
        handles += [
            sample(
                "hollow: before the local steps",
                color="#333333",
                marker="o",
                markerfacecolor="white",
                linestyle="none",
            )
        ]
        title = f"Choices move one method by up to {_widest(table, ['method']):.2f}"
        # None where no two methods have a choice in common.
        if between := _widest(table, ["when", *study.options]):
            title += f"; under the same choices methods differ by up to {between:.2f}"
        below = "accuracy of clients' test nodes"
        drawing.head(figure, f"{title}\n{study.title}", handles, below=below)
    return figure


def choices(table: pd.DataFrame, options: Iterable[str]) -> list[str]:
    """The values of options that tell each row from others of its method and graph: of as few
    options as do, the first before later ones.

    An option that several methods have in several values is given of all.
    """
    # FedAvg by Adam with decays 0.1 and 0, and by SGD with decay 0: the optimiser alone tells SGD
    # from the others, and the decay tells those two apart.  As the decay varies for FedAvg, all of
    # its rows have it: "optimizer=adam, weight_decay=0.1", ..., "optimizer=sgd, weight_decay=0".
    told, graph = pd.Series("", index=table.index), table["dataset"].map(variants.base)
    for option in options:
        text = option + "=" + table[option].map(md.value)
        varied = text.groupby([table["method"], graph, told]).transform("nunique") > 1
        varied = varied.groupby(table["method"]).transform("any")
        if table["method"][varied].nunique() > 1:  # one method's own option is not told of others
            varied = table[option].notna()
        told = told.where(~varied, told.where(told == "", told + ", ") + text)
    return told.replace("", "no choice").tolist()


def _widest(table: pd.DataFrame, alike: list[str]) -> float:
    """The widest range of accuracies of one graph that have these columns alike; before or after
    local steps is ``when``.
    """
    both = table.melt(
        [name for name in table if name not in ACCURACIES], ACCURACIES, "when", "accuracy"
    )
    return float(both.groupby(["graph", *alike], dropna=False)["accuracy"].agg(np.ptp).max())
