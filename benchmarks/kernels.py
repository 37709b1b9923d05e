"""What the parts of a training step cost, and what the alternatives to them would: the reasons for
how ours is written.

    python -m benchmarks.kernels --graphs results/graphs --output benchmarks/results

Measured on the block of features that one mini-batch of 32 roots needs (fan-out 5, two layers,
width 128).
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from torch.nn.functional import dropout, embedding_bag
from tqdm import tqdm

from benchmarks.arguments import parser_of
from feddep.experiment.provenance import environment
from feddep.graph.graph import Graph
from feddep.graph.sampling import sample_trees
from feddep.nn.dropout import dropout_mask
from feddep.nn.feature_table import FeatureTable
from feddep.utils.files import write_json, write_text

BATCH, FANOUTS, HIDDEN = 32, (5, 5), 128

Work = Callable[[], object]


def median_ms(work: Work, repeats: int = 60) -> float:
    """Median milliseconds of a call, after a few to warm up."""
    times = []
    for repeat in range(repeats + 5):
        start = time.perf_counter()
        work()
        if repeat >= 5:
            times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def alternatives(graph: Graph) -> Iterator[tuple[str, str, Work]]:
    """(part of the step, how it is done, the work); the first of each part is what we use."""
    rng = np.random.default_rng(0)
    roots = rng.permutation(graph.num_nodes)[:BATCH]
    trees = sample_trees(graph, roots, FANOUTS, rng)
    own, drawn = (part.reshape(-1, *part.shape[2:]) for part in trees.split(trees.nodes))
    table = FeatureTable(graph.features)
    block: Any = table.joined(own, drawn)
    matrix = sp.csr_matrix(block._arrays, shape=block.shape)
    each = sp.csr_matrix(sp.hstack([graph.features, graph.features]), dtype=np.float32)
    weight = torch.randn(block.shape[1], HIDDEN, requires_grad=True)
    constant, upstream = weight.detach(), torch.randn(block.shape[0], HIDDEN)
    csr = torch.sparse_csr_tensor(
        *map(torch.from_numpy, (matrix.indptr, matrix.indices, matrix.data)), matrix.shape
    )
    dense = torch.from_numpy(matrix.toarray())
    indices, offsets, values = map(
        torch.from_numpy, (matrix.indices, matrix.indptr[:-1], matrix.data)
    )

    yield "lookup", "ours: each drawn neighbour once", lambda: table.joined(own, drawn)
    everyone = np.concatenate([own[:, None], drawn], axis=1).clip(0).ravel()
    yield "lookup", "every draw", lambda: each[everyone]

    yield "product A W", "ours: embedding_bag", lambda: block.multiply(constant)
    yield "product A W", "torch CSR", lambda: csr @ constant
    yield "product A W", "SciPy CSR", lambda: matrix @ constant.numpy()
    yield "product A W", "dense", lambda: dense @ constant

    def native() -> object:
        product = embedding_bag(indices, weight, offsets, mode="sum", per_sample_weights=values)
        return torch.autograd.grad(product, weight, upstream)

    yield (
        "gradient Aᵀ G",
        "ours: transpose, embedding_bag",
        lambda: block.transpose().multiply(upstream),
    )
    yield "gradient Aᵀ G", "SciPy CSC", lambda: matrix.T @ upstream.numpy()
    yield "gradient Aᵀ G", "dense", lambda: dense.T @ upstream
    yield "gradient Aᵀ G", "PyTorch's own (with product)", native

    hidden, generator = torch.randn(block.shape[0], HIDDEN), torch.Generator().manual_seed(0)
    yield "dropout", "ours: 16 bits a unit", lambda: hidden * dropout_mask(hidden, 0.5, generator)
    yield "dropout", "torch.nn.functional.dropout", lambda: dropout(hidden, 0.5)

    epoch = rng.permutation(graph.num_nodes)[: 50 * BATCH]
    yield "50 batches drawn", "ours: at once", lambda: sample_trees(graph, epoch, FANOUTS, rng)

    def one_by_one() -> None:
        for start in range(0, len(epoch), BATCH):
            sample_trees(graph, epoch[start : start + BATCH], FANOUTS, rng)

    yield "50 batches drawn", "batch by batch", one_by_one


def main() -> None:
    """Measure every graph in the folder and write ``kernels.csv``."""
    arguments = parser_of(__doc__).parse_args()
    torch.set_num_threads(arguments.threads)
    columns: dict[str, dict[tuple[str, str], float]] = {}
    for dataset in tqdm(arguments.datasets):
        graph = Graph.load(arguments.graphs / f"{dataset}.safetensors")
        columns[f"{dataset}_ms"] = {
            (part, how): round(median_ms(work), 4) for part, how, work in alternatives(graph)
        }
    table = pd.DataFrame(columns).rename_axis(["part", "how"]).reset_index()
    write_text(arguments.output / "kernels.csv", table.to_csv(index=False))
    write_json(arguments.output / "kernels.provenance.json", environment("cpu", arguments.threads))
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
