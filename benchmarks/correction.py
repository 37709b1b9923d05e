"""Nadeau and Bengio's correction for federated training: which factor covers a new graph of the
same law.

    python -m benchmarks.correction --output benchmarks/results

Random graphs of three kinds are divided ten times each, into three clients by Louvain, and split
within them.  In each division FedAvg and three other methods are trained as in the field, for fewer
rounds.  An interval is one graph's; what it should cover is the mean over the other graphs of its
kind.  With ``--reuse`` the tables are made anew of the recorded trainings.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats
from tqdm import tqdm

from feddep import api
from feddep.experiment.provenance import environment
from feddep.reporting import drawing
from feddep.reporting.output import write
from feddep.training.config import FIELD
from feddep.utils.csv_files import write_csv
from feddep.utils.files import write_json

DIVISIONS, CLIENTS, ROUNDS = 10, 3, 20
METHODS = ("fedavg", "fedper", "local", "fedavg_oracle")
GRAPH = {"nodes": 300, "classes": 4, "communities": 8, "features": 120, "words": 8}
KINDS: dict[str, dict[str, Any]] = {
    "homophilous": {"degree_within": 3.0, "degree_between": 1.5, "signal": 0.45},
    "heterophilous": {
        "communities": 4,
        "degree_within": 0.5,
        "degree_between": 4.0,
        "signal": 0.8,
    },
    "noise features": {"degree_within": 3.0, "degree_between": 1.0, "signal": 0.25},
}
"""Of each kind the options that differ from :data:`GRAPH`; with noise features, words are drawn
without regard to classes.
"""
SPLITS = {"20/40/40": (0.2, 0.4, 0.4), "60/20/20": (0.6, 0.2, 0.2)}
CASES = [*((kind, "20/40/40") for kind in KINDS), ("homophilous", "60/20/20")]


def trainings(graphs: Iterable[int], cases: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """A row a division: kind, split, graph, seed, and of each method the accuracy that owners
    reach.
    """
    for graph, (kind, split), division in product(graphs, cases, range(DIVISIONS)):
        whole = api.synthetic_graph(**{**GRAPH, **KINDS[kind]}, seed=graph)
        seed = graph * DIVISIONS + division
        clients = api.partition(whole, CLIENTS, seed)
        nodes = api.split(whole, seed, *SPLITS[split], method="within_clients", partition=clients)
        found = {
            method: api.run(
                method, whole, nodes, clients, setting={**FIELD, "rounds": ROUNDS}, seed=seed
            ).owners
            for method in METHODS
        }
        yield {"kind": kind, "split": split, "graph": graph, "seed": seed, **found}


def intervals(runs: pd.DataFrame, divisions: int) -> pd.DataFrame:
    """A row a kind, split, graph and method: the mean difference from FedAvg over so many divisions
    less that of the other graphs, ``error``; ``between`` and ``within``, estimates of the variances
    over graphs and over divisions; and ``needed``, the factor f from which an interval with
    variance s² (1/J + f) covers the others' mean.
    """
    rows = []
    for (kind, split), of in runs.groupby(["kind", "split"], sort=False):
        for method in METHODS[1:]:
            differences = (of[method] - of[METHODS[0]]).groupby(of["graph"]).head(divisions)
            by_graph = differences.groupby(of["graph"])
            means, variances = by_graph.mean(), by_graph.var()
            errors = (means - means.mean()) * len(means) / (len(means) - 1)
            within = variances.mean()
            reach = stats.t.ppf(0.975, divisions - 1) ** 2 * variances
            rows.append(
                pd.DataFrame(
                    {
                        "kind": kind,
                        "split": split,
                        "method": method,
                        "error": errors,
                        "needed": (errors**2 / reach - 1 / divisions).clip(lower=0.0),
                        "between": max(0.0, means.var() - within / divisions),
                        "within": within,
                    }
                )
            )
    return pd.concat(rows, ignore_index=True)


def coverage(of: pd.DataFrame, factor: float) -> float:
    """The share of intervals that cover with a factor."""
    return float((of["needed"] <= factor).mean())


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """A row a kind, split and number of divisions J, over the three methods.

    Returns:
        intervals, their number; plain: coverage with factor 0, tenth: with 0.1, corrected: with
        n_test/n_train, the ratio; factor_95: the least factor with coverage 95 %; factor_variances:
        the median over methods of the variance between graphs over that between divisions; wider:
        how many times the interval with the ratio is as wide as with factor_95.
    """
    rows = []
    for divisions in (3, 5, DIVISIONS):
        found = intervals(runs, divisions)
        for (kind, split), of in found.groupby(["kind", "split"], sort=False):
            train, _, test = SPLITS[str(split)]
            ratio = test / train
            factor = float(of["needed"].quantile(0.95, interpolation="higher"))
            rows.append(
                {
                    "kind": kind,
                    "split": split,
                    "divisions": divisions,
                    "intervals": len(of),
                    "ratio": ratio,
                    "plain": coverage(of, 0.0),
                    "tenth": coverage(of, 0.1),
                    "corrected": coverage(of, ratio),
                    "factor_95": factor,
                    "factor_variances": (of["between"] / of["within"])
                    .groupby(of["method"])
                    .first()
                    .median(),
                    "wider": ((1 / divisions + ratio) / (1 / divisions + factor)) ** 0.5,
                }
            )
    return pd.DataFrame(rows)


def plot(runs: pd.DataFrame) -> Figure:
    """Coverage over the factor, a line a kind and split; a point where the factor is
    n_test/n_train.
    """
    factors = np.linspace(0, 2.2, 221)
    with drawing.style():
        figure, ((ax,),) = drawing.panels(1, 1, 2.4)
        found = intervals(runs, DIVISIONS)
        for k, ((kind, split), of) in enumerate(found.groupby(["kind", "split"], sort=False)):
            train, _, test = SPLITS[str(split)]
            covered = [coverage(of, factor) for factor in factors]
            ax.plot(factors, covered, color=drawing.colour(k), label=f"{kind}, {split}")
            ax.plot(test / train, coverage(of, test / train), "o", color=drawing.colour(k))
        ax.axhline(0.95, color=drawing.INK, linewidth=0.8, linestyle=":")
        ax.set(
            xlabel="factor f in s² (1/J + f), J = 10; points: n_test/n_train",
            ylabel="intervals that cover",
        )
        plain = coverage(found, 0.0)
        drawing.head(
            figure,
            f"Of 95 % intervals of one graph {plain:.0%} cover a new graph of the same law\n"
            "Coverage over a factor f that makes them wider",
            ax.get_legend_handles_labels()[0],
        )
    return figure


def main() -> None:
    """Train; write ``correction_runs.csv``, ``correction.csv`` with its figure, and provenance."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results"), help="folder to write to"
    )
    parser.add_argument("--graphs", type=int, default=34, help="graphs of each kind")
    parser.add_argument("--reuse", action="store_true", help="train nothing")
    arguments = parser.parse_args()
    recorded = arguments.output / "correction_runs.csv"
    if not arguments.reuse:
        total = arguments.graphs * len(CASES) * DIVISIONS
        rows = pd.DataFrame(tqdm(trainings(range(arguments.graphs), CASES), total=total))
        write_csv(recorded, rows, digits=4)
        write_json(arguments.output / "correction.provenance.json", environment("cpu", 1))
    runs = pd.read_csv(recorded)
    write_csv(arguments.output / "correction.csv", summary(runs), digits=4)
    write(arguments.output, {"correction": plot(runs)})


if __name__ == "__main__":
    main()
