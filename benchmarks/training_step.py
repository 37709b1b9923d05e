"""Time and memory of a training step: ours beside a plain PyG implementation, on the real graphs.

    python -m benchmarks.training_step --graphs results/graphs --output benchmarks/results

Both draw neighbourhoods by the same law, train the same two-layer GraphSAGE (width 128, batch 32,
fan-out 5, dropout 0.5) by SGD, and count everything that a step takes: drawing, looking up
features, forward, backward and update.  First it is checked that, without dropout and from the same
draws, both compute the same loss and the same weights.  Then rounds of steps of the two alternate
in one process, and the ratio is that of their medians.  Peak memory is measured in one process
each: how much the resident set grew from before the features were prepared.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from benchmarks.arguments import parser_of
from benchmarks.memory import growth
from benchmarks.plain import PlainSAGE, blocks_of
from feddep.experiment.provenance import environment
from feddep.graph.graph import Graph
from feddep.graph.sampling import sample_trees
from feddep.nn.feature_table import FeatureTable
from feddep.nn.sage import GraphSAGE
from feddep.utils.files import write_json, write_text

LAYERS, HIDDEN, BATCH, RATE, DROPOUT = 2, 128, 32, 0.1, 0.5
FANOUTS = (5,) * LAYERS
STEPS = 50
ROUNDS = 9

Stepper = Callable[[np.ndarray], None]


def ours(graph: Graph, dropout: float = DROPOUT) -> tuple[GraphSAGE, Stepper]:
    """Our model, and a function that trains it on an epoch of root nodes."""
    model = GraphSAGE(graph.num_features, HIDDEN, graph.num_classes, LAYERS, dropout)
    model.reset_parameters(torch.Generator().manual_seed(0))
    table, labels = FeatureTable(graph.features), torch.from_numpy(graph.labels)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    rng, generator = np.random.default_rng(1), torch.Generator().manual_seed(2)

    def train(roots: np.ndarray) -> None:
        trees = sample_trees(graph, roots, FANOUTS, rng)
        for start in range(0, len(roots), BATCH):
            batch = slice(start, start + BATCH)
            optimizer.zero_grad()
            loss = cross_entropy(
                model(trees[batch], table, generator), labels[torch.from_numpy(roots[batch])]
            )
            loss.backward()
            optimizer.step()

    return model, train


def plain(graph: Graph, dropout: float = DROPOUT) -> tuple[PlainSAGE, Stepper]:
    """The plain model, and a function that trains it on an epoch of root nodes, drawing for one
    batch at a time.
    """
    model = PlainSAGE(graph.num_features, HIDDEN, graph.num_classes, LAYERS, dropout)
    x, labels = torch.from_numpy(graph.features.toarray()), torch.from_numpy(graph.labels)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    rng = np.random.default_rng(1)

    def train(roots: np.ndarray) -> None:
        for start in range(0, len(roots), BATCH):
            batch = roots[start : start + BATCH]
            sources, blocks = blocks_of(sample_trees(graph, batch, FANOUTS, rng))
            optimizer.zero_grad()
            loss = cross_entropy(
                model(x[torch.from_numpy(sources)], blocks), labels[torch.from_numpy(batch)]
            )
            loss.backward()
            optimizer.step()

    return model, train


IMPLEMENTATIONS = {"ours": ours, "plain": plain}


def largest_difference(graph: Graph, roots: np.ndarray) -> float:
    """Largest difference of a weight between the two after one step on one batch from the same
    draws, without dropout.
    """
    our_model, our_train = ours(graph, dropout=0.0)
    plain_model, plain_train = plain(graph, dropout=0.0)
    plain_model.copy_weights(our_model)
    our_train(roots[:BATCH])
    plain_train(roots[:BATCH])
    reference, _ = plain(graph, dropout=0.0)
    reference.copy_weights(our_model)
    pairs = zip(reference.parameters(), plain_model.parameters(), strict=True)
    return max(float((our - their).detach().abs().max()) for our, their in pairs)


def milliseconds(graph: Graph, roots: np.ndarray) -> dict[str, float]:
    """Median milliseconds a step of each implementation, measured in turns."""
    trainers = {name: make(graph)[1] for name, make in IMPLEMENTATIONS.items()}
    times: dict[str, list[float]] = {name: [] for name in trainers}
    for measured in range(-1, ROUNDS):  # the first round warms up
        for name, train in trainers.items():
            start = time.perf_counter()
            train(roots)
            if measured >= 0:
                times[name].append(1000 * (time.perf_counter() - start) / STEPS)
    return {name: statistics.median(values) for name, values in times.items()}


def peak_megabytes(path: Path, name: str) -> float:
    """Growth of the resident set, from before the implementation was set up to its peak, in a
    process of its own.
    """
    command = [
        sys.executable,
        "-m",
        "benchmarks.training_step",
        "--memory",
        name,
        "--graphs",
        str(path),
    ]
    return float(
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    )


def measure_memory(path: Path, name: str) -> None:
    """Print the growth of this process's resident set, in MiB."""
    torch.set_num_threads(1)
    graph = Graph.load(path)
    print(
        json.dumps(
            growth(
                lambda: IMPLEMENTATIONS[name](graph)[1](np.arange(BATCH * STEPS) % graph.num_nodes)
            )
        )
    )


def main() -> None:
    """Measure every graph in the folder and write ``training_step.csv`` and ``.md``."""
    parser = parser_of(__doc__)
    parser.add_argument("--memory", choices=list(IMPLEMENTATIONS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        measure_memory(arguments.graphs, arguments.memory)
        return

    torch.set_num_threads(arguments.threads)
    rows = []
    for dataset in tqdm(arguments.datasets):
        path = arguments.graphs / f"{dataset}.safetensors"
        graph = Graph.load(path)
        roots = np.random.default_rng(0).permutation(graph.num_nodes)[: BATCH * STEPS]
        times = milliseconds(graph, roots)
        memory = {name: peak_megabytes(path, name) for name in IMPLEMENTATIONS}
        rows.append(
            {
                "dataset": dataset,
                "ours_ms": round(times["ours"], 3),
                "plain_ms": round(times["plain"], 3),
                "speedup": round(times["plain"] / times["ours"], 2),
                "ours_mib": round(memory["ours"], 1),
                "plain_mib": round(memory["plain"], 1),
                "memory_ratio": round(memory["plain"] / memory["ours"], 2),
                "largest_difference": largest_difference(graph, roots),
            }
        )
    table = pd.DataFrame(rows)
    write_text(arguments.output / "training_step.csv", table.to_csv(index=False))
    write_json(
        arguments.output / "training_step.provenance.json", environment("cpu", arguments.threads)
    )
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
