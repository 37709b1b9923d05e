"""Nadeau and Bengio's correction for federated training: which factor covers a new graph of the
same law.

    python -m benchmarks.correction --output benchmarks/results

Random graphs of three kinds are divided ten times each, into three clients by Louvain, and split
within them.  In each division FedAvg and three other methods are trained as in the field, for fewer
rounds.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from feddep import api
from feddep.experiment.provenance import environment
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


def main() -> None:
    """Train, and write ``correction_runs.csv`` and its provenance."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results"), help="folder to write to"
    )
    parser.add_argument("--graphs", type=int, default=34, help="graphs of each kind")
    arguments = parser.parse_args()
    total = arguments.graphs * len(CASES) * DIVISIONS
    rows = pd.DataFrame(tqdm(trainings(range(arguments.graphs), CASES), total=total))
    write_csv(arguments.output / "correction_runs.csv", rows, digits=4)
    write_json(arguments.output / "correction.provenance.json", environment("cpu", 1))


if __name__ == "__main__":
    main()
