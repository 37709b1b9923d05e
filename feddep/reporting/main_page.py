"""The page of the main tables.

The layout is that of the papers' Table 2: datasets side by side, a line a method and source.
"""

from collections.abc import Mapping

import pandas as pd

from feddep.reporting import markdown as md
from feddep.reporting import statistics
from feddep.reporting.frames import client_numbers, records
from feddep.reporting.labels import dataset_title, is_oracle, method_title, sort_datasets
from feddep.reporting.published import OURS, papers

SELECTIONS = {
    "": "test accuracy at the round that is best on validation",
    "last_": "test accuracy after the last round",
}
"""The two ways to choose the round, neither of which looks at the test nodes, by what their columns
begin with.
"""
LOCAL = {"local_before_": "local, before", "local_after_": "local, after"}
"""Where each node is classified by its owner: what columns begin with, and how lines are called."""
_SIDE_BY_SIDE = 2
"""Datasets beside each other on a page."""
_TITLE = "# Node classification accuracy\n"
_NOTES = """\
- *ours*: mean ± sample standard deviation over the seeds; for Local each seed's number is the mean
  over the clients' models. *local*, where it was measured: the same test nodes, each classified by
  its owner on its own, possibly mended subgraph, before and after the local steps of the round.
- The round is chosen on validation nodes, never on test nodes; the numbers after the last round
    stand in the second table.
- **bold**: the two best of ours in a column, Global and oracles left aside. Verdicts are
  [below](#differences-from-fedavg).
"""
_PAPERS = """\
- Papers: their main tables, as printed. They train differently; compare ours with the paper of
  its setting. Methods are called as here, whatever a paper calls them.
"""
_EFFECTS = f"""\
## Differences from FedAvg

Difference of test accuracy (at the round that is best on validation nodes) from FedAvg's.
{statistics.HOW_JUDGED}
g_z is the standardised effect: the mean difference over the sample standard deviation of the
differences (d_z of Cohen 1988), free of its bias (Hedges 1981). A large one may be a small
difference: seeds that agree to the fourth digit make any difference many standard deviations. Both
are in `effects.csv`, p-values in `comparisons.csv`.
"""
_GRAPHS = f"""\
## Over graphs

{statistics.HOW_POOLED}
"""
_COSTS = """\
## Communication and runtime

Means over seeds. *MB*: all that crossed a client's border in either direction, 10⁶ bytes; *MB
beside*: what of it are neither the classifier's weights nor the losses and numbers of correct
answers that clients report. *seconds*: on one core, of training the classifier, all clients in
turn, and of each stage before; stages whose results are shared by several rows count for each.
Times are those of the machines below, with whatever else they did: take them for orders of
magnitude. *assumes*: what the method needs or gives away beyond FedAvg (docs/methods/index.md).
"""
_PARTITIONS = """\
## Partitions

Edges are undirected. *Missing edges* join nodes of different clients, so that no client knows them;
*share* is their part of all edges. *ours*: mean over seeds, ± sample standard deviation.
"""


def markdown(tables: Mapping[str, pd.DataFrame], found: Mapping[str, str]) -> str:
    """Accuracy, differences from FedAvg on each graph and over graphs, costs, partitions, and every
    published number beside ours.

    Args:
        tables: accuracy, comparisons, graphs, costs and partitions, see
            :mod:`feddep.reporting.main`.
        found: what each figure says, by its name.
    """
    accuracy, comparisons = tables["accuracy"], tables["comparisons"]
    papers_too = accuracy.filter(like="paper_").notna().any(axis=None)
    settings = list(dict.fromkeys(accuracy["setting"]))
    images = [_image(f"accuracy_{setting}", found) for setting in settings]
    parts = [_TITLE, *images, _NOTES + (_PAPERS if papers_too else "")]
    for setting in settings:
        parts.append(f"## Setting {setting}\n")
        for selection, title in SELECTIONS.items():
            parts.append(f"### {title.capitalize()}\n")
            parts += [md.table(*block) for block in _blocks(accuracy, setting, selection)]
        parts.append(_image(f"curves_{setting}", found))
    effects = ["method", "clients", *statistics.SHOWN, "g_z"]
    parts += [_EFFECTS, md.shown(comparisons, effects, level=3)] if len(comparisons) else []
    costs = tables["costs"].assign(
        MB=tables["costs"]["bytes"] / 1e6, MB_beside=tables["costs"]["bytes_beside"] / 1e6
    )
    seconds = [str(name) for name in costs if str(name).startswith("seconds")]
    shown = md.shown(costs, ["method", "clients", "MB", "MB_beside", *seconds, "assumes"], level=3)
    graphs = md.shown(tables["graphs"], statistics.POOLED, ["setting"], 3)
    parts += [_GRAPHS, graphs, _COSTS, shown]
    if len(tables["partitions"]):
        parts += [_PARTITIONS, _image("partitions", found), _partitions(tables["partitions"])]
    return md.explained("\n".join(parts))


def _image(name: str, found: Mapping[str, str]) -> str:
    return f"![{md.text(found[name])}]({name}.svg)\n"


def _blocks(
    accuracy: pd.DataFrame, setting: str, selection: str
) -> list[tuple[list[str], list[list[str]]]]:
    """Header and lines of a setting's table, two datasets at a time."""
    table = accuracy[accuracy["setting"] == setting]
    top = _top_two(table, f"{selection}mean")
    sources = {
        selection: OURS,
        **({} if selection else LOCAL),
        **{f"paper_{paper}_": title for paper, title in papers().items()},
    }
    numbers = client_numbers(table)
    datasets = sort_datasets(table["dataset"])
    blocks = []
    for start in range(0, len(datasets), _SIDE_BY_SIDE):
        shown = datasets[start : start + _SIDE_BY_SIDE]
        cells: dict[tuple[tuple[str, ...], str], str] = {}
        for method in dict.fromkeys(table["method"]):
            for prefix, source in sources.items():
                for row in records(
                    table[(table["method"] == method) & table["dataset"].isin(shown)]
                ):
                    if row[f"{prefix}mean"] is None:
                        continue
                    place = method, row["dataset"], row["clients"]
                    text = (md.printed if source in papers().values() else md.plus_minus)(
                        row[f"{prefix}mean"], row[f"{prefix}std"]
                    )
                    if source == OURS:
                        text = f"**{text}**" if place in top else text
                        text += md.mark(row)
                    # A method that sees the whole graph stands in the first column of each dataset.
                    cells[
                        (method_title(method), source),
                        _column(row["dataset"], row["clients"] or numbers[0]),
                    ] = text
        blocks.append(md.grid(cells, [_column(dataset, m) for dataset in shown for m in numbers]))
    return blocks


def _column(dataset: str, clients: int | None) -> str:
    return dataset_title(dataset) + (f" M={clients}" if clients else "")


def _top_two(table: pd.DataFrame, mean: str) -> set[tuple[str, str, int]]:
    """(method, dataset, clients) of the two best at each place with more than two methods; ties
    make it more.
    """
    rivals = table[table["clients"].notna() & ~table["method"].map(is_oracle).astype(bool)]
    by_place = rivals.groupby(["dataset", "clients"])[mean]
    best = rivals[
        (rivals[mean] >= by_place.transform(lambda means: means.nlargest(2).min()))
        & (by_place.transform("size") > 2)
    ]
    return set(zip(best["method"], best["dataset"], best["clients"], strict=True))


def _partitions(table: pd.DataFrame) -> str:
    """A line a partition, and below it the papers'."""
    names = ["nodes", "edges", "mean_client_nodes", "mean_client_edges", "missing_edges"]
    rows = []
    for row in records(table):
        for source, prefix in {
            OURS: "",
            **{title: f"{paper}_" for paper, title in papers().items()},
        }.items():
            if row[f"{prefix}edges"] is not None:
                place = {"dataset": row["dataset"], "clients": row["clients"], "source": source}
                share = row[f"{prefix}missing_edges"] / max(1, row[f"{prefix}edges"])
                std = None if prefix else row["missing_edges_std"]
                rows.append(
                    {
                        **place,
                        **{name: row[prefix + name] for name in names},
                        "std": std,
                        "share": share,
                    }
                )
    return md.shown(
        pd.DataFrame(rows), ["dataset", "clients", "source", *names, "std", "share"], []
    )
