"""What generators generate beside guesses that need no training (:mod:`feddep.quality`), over runs and seeds."""

import pandas as pd

from feddep.config import Config
from feddep.reporting import measured
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.markdown import table as pipe_table
from feddep.reporting.studies.common import text

_NOTES = """\
A generator learns on subgraphs whose nodes are partly hidden, to give a node v the mean prototype t_v of its hidden neighbours.
*Explained* is 1 − Σ‖guess − t_v‖² / Σ‖mean − t_v‖² over the nodes v that miss a neighbour, where *mean* is the mean prototype of
the client, a guess that is the same for all nodes: above 0 is better than that, 1 is perfect. *Zero* is to generate nothing;
*own* takes v's own prototype, as if neighbours were like the node. *Generated*: share of all nodes for which DGen generates
anything; *silent*: share of the clients in which it does so for none. *Count*: mean of |ñ_v − n_v| for the number of missing
neighbours, beside that of their mean number.

Nodes are hidden anew, other than those that DGen was trained on. Means over clients and seeds; ± sample standard deviation over
seeds.
"""
_GUESSES = {"DGen": "DGen", "zero": "zero", "own prototype": "own"}


def load(config: Config) -> pd.DataFrame:
    """The measurements of all runs that the key ``quality`` names: the columns of the run, then those of its measurement.

    Raises:
        DataError: if a run is not measured yet, or no run is named.
    """
    return measured.load(config, "quality")


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a setting, dataset, framework, number of clients, choice of hidden nodes and guess; datasets in the papers' order.

    Returns:
        seeds; explained_mean, explained_std; generated; silent, the share of clients with nothing generated; count_error.  First
        the mean over clients of each seed, then over seeds.
    """
    cell = ["setting", "dataset", "framework", "clients", "hidden", "guess"]
    values = ["explained", "generated", "silent", "count_error"]
    rows = rows.assign(silent=(rows["generated"] == 0).astype(float))
    seeds = rows.groupby([*cell, "seed"], sort=False)[values].mean().reset_index()
    summary = (
        seeds.groupby(cell, sort=False)
        .agg(
            seeds=("seed", "size"),
            explained_mean=("explained", "mean"),
            explained_std=("explained", "std"),
            generated=("generated", "mean"),
            silent=("silent", "mean"),
            count_error=("count_error", "mean"),
        )
        .reset_index()
    )
    return in_paper_order(summary, ["dataset"])


def markdown(summary: pd.DataFrame) -> str:
    """A page with a table a dataset; a line a number of clients and framework."""
    anew = summary[summary["hidden"] == "anew"]
    header = ["M", "", *(f"explained: {title}" for title in _GUESSES.values()), "generated", "silent"]
    header += ["count: DGen", "count: mean"]
    parts = [f"# Generated neighbours beside guesses\n\n{_NOTES}"]
    for (setting, dataset), block in anew.groupby(["setting", "dataset"], sort=False):
        lines = []
        for _, rows in block.groupby(["clients", "framework"], sort=False):
            guesses = {row["guess"]: row for row in records(rows)}
            cell = guesses["DGen"]
            explained = [text.plus_minus(guesses[name]["explained_mean"], guesses[name]["explained_std"]) for name in _GUESSES]
            counts = [f"{guesses[name]['count_error']:.3f}" for name in ("DGen", "mean prototype")]
            names = [str(cell["clients"]), text.framework_title(cell["framework"])]
            lines.append([*names, *explained, f"{cell['generated']:.1%}", f"{cell['silent']:.1%}", *counts])
        of_setting = "" if anew["setting"].nunique() == 1 else f", setting {setting}"
        parts.append(f"## {text.dataset_title(str(dataset))}{of_setting}\n\n{pipe_table(header, lines)}")
    return "\n".join(parts)
