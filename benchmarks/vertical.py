"""Time and memory of an epoch of VESPER on a graph of a million nodes, and of a step over the size
of the graph.

    python -m benchmarks.vertical --output benchmarks/results

Synthetic graphs of the shape of the paper's Finance dataset (Table 2): 2.16 edges a node, half of
the nodes without any, 155 dense features, two classes, three in four nodes for training.  Those
that have edges form a random graph with expected degrees that follow a power law.  The model is
PMP-GIN with two layers, D = 10 and the paper's width of 256 for Finance, on batches of 512, by
Adam.  Everything that a step takes is counted, at both parties.  Peak memory is that of a process
that makes the graph, trains for an epoch and evaluates.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from tqdm import tqdm

from feddep.experiment.provenance import environment
from feddep.graph.graph import Graph
from feddep.graph.split import random_split
from feddep.methods.vesper import WeightParameters
from feddep.methods.vesper.perturbed import Design
from feddep.methods.vesper.split_training import Protocol, SplitTraining, new_encoder, perturbed
from feddep.training.config import TrainingConfig
from feddep.training.task import Task
from feddep.utils.csv_files import write_csv
from feddep.utils.files import write_json

NODES, EDGES, FEATURES, TRAINING = 1_132_511, 2_447_370, 155, 848_963
SIZES = (10_000, 100_000, NODES)
SETTING = TrainingConfig(
    optimizer="adam",
    learning_rate=0.001,
    batch_size=512,
    rounds=1,
    hidden_channels=256,
    dropout=0.0,
)
STEPS = 100
EXPONENT = 0.4
"""The i-th of the nodes with edges has an expected degree in proportion to i^−0.4: a power law of
exponent 3.5.
"""


def finance_like(nodes: int, seed: int = 0) -> Graph:
    """A graph of this shape and size; edges that are drawn twice or join a node to itself are drawn
    again.
    """
    rng = np.random.default_rng(seed)
    edges = round(EDGES / NODES * nodes)
    active = rng.permutation(nodes)[: nodes // 2]
    weights = np.cumsum(np.arange(1, len(active) + 1) ** -EXPONENT)
    pairs = np.zeros((0, 2), dtype=np.int64)
    while len(pairs) < edges:
        drawn = active[np.searchsorted(weights, rng.random((edges, 2)) * weights[-1])]
        drawn = np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1)
        pairs = np.unique(np.concatenate([pairs, drawn]), axis=0)
    pairs = pairs[rng.permutation(len(pairs))[:edges]]
    values = rng.standard_normal((nodes, FEATURES), dtype=np.float32)
    columns = np.tile(np.arange(FEATURES, dtype=np.int32), nodes)
    ends = np.arange(0, nodes * FEATURES + 1, FEATURES, dtype=np.int32)
    features = sp.csr_matrix((values.ravel(), columns, ends), shape=(nodes, FEATURES))
    return Graph.from_edges(pairs, features, rng.integers(0, 2, nodes), 2)


def training_on(graph: Graph) -> SplitTraining:
    """VESPER with PMP-GIN on this graph."""
    share = TRAINING / NODES
    split = random_split(
        graph.num_nodes, {"train": share, "val": (1 - share) / 2, "test": (1 - share) / 2}, 0
    )
    task = Task("benchmark", graph, split, None, SETTING, 0)
    protocol: Protocol = perturbed(task, WeightParameters(theta=1.0), Design("gin", theta=1.0))
    return SplitTraining(task, protocol, new_encoder(task, protocol.parameters))


def milliseconds(training: SplitTraining) -> float:
    """Median time of a step."""
    times = []
    for step in range(STEPS + 5):
        start = time.perf_counter()
        training.party_a.update(training.party_b.learn(training.party_a.represent()))
        if step >= 5:  # the first warm up
            times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def measure(nodes: int) -> dict[str, float]:
    """Everything about one size, in this process."""
    torch.set_num_threads(1)
    graph = finance_like(nodes)
    made = _resident_megabytes("VmHWM")
    training = training_on(graph)
    step = milliseconds(training)
    start = time.perf_counter()
    training.epoch()
    trained = time.perf_counter()
    training.evaluate()
    evaluated = time.perf_counter()
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "without_edges": round(float((graph.degrees == 0).mean()), 3),
        "above_D": round(float((graph.degrees > 10).mean()), 4),
        "step_ms": round(step, 1),
        "epoch_s": round(trained - start, 1),
        "evaluation_s": round(evaluated - trained, 1),
        "graph_mib": round(made),
        "peak_mib": round(_resident_megabytes("VmHWM")),
    }


def _resident_megabytes(field: str) -> float:
    """Resident set of this process, now (VmRSS) or at its peak (VmHWM), in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def main() -> None:
    """Measure every size in a process of its own and write ``vertical.csv``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results"), help="folder to write to"
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of nodes"
    )
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    rows = []
    for size in tqdm(arguments.sizes):
        command = [sys.executable, "-m", "benchmarks.vertical", "--one", str(size)]
        rows.append(
            json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        )
    table = pd.DataFrame(rows)
    write_csv(arguments.output / "vertical.csv", table)
    write_json(arguments.output / "vertical.provenance.json", environment("cpu", 1))
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
