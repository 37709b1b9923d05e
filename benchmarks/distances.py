"""Time and memory of the distances that DGen is trained by: in blocks of nodes beside all nodes at
once.

    python -m benchmarks.distances --output benchmarks/results

One step of the terms of L^n that compare what is generated with prototypes (FedDEP, Section 3.2),
forward and backward: 5 slots, width 128, 15 prototypes of each of 9 other clients.  All at once is
what one writes with PyTorch, whose own gradients keep every difference.  Steps of the two alternate
in one process; peak memory is measured in one process each.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from benchmarks.memory import growth
from feddep.experiment.provenance import environment
from feddep.methods.feddep.generation import nearest, squared_distances
from feddep.utils.csv_files import write_csv
from feddep.utils.files import write_json

SLOTS, WIDTH, PROTOTYPES, OTHERS = 5, 128, 15, 9
STEPS = 5


def drawn(nodes: int) -> tuple[Tensor, list[Tensor]]:
    """Embeddings in all slots, and the others' prototypes."""
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.rand(nodes * SLOTS, WIDTH, generator=generator).requires_grad_()
    return embeddings, [torch.rand(PROTOTYPES, WIDTH, generator=generator) for _ in range(OTHERS)]


def in_blocks(embeddings: Tensor, others: list[Tensor]) -> Tensor:
    """The sum of all distances as they are computed here."""
    _, squares = squared_distances(embeddings, [nearest(embeddings, each) for each in others])
    return sum((each.sum() for each in squares), torch.zeros(()))


def at_once(embeddings: Tensor, others: list[Tensor]) -> Tensor:
    """The same of all nodes at once."""
    found = torch.stack([nearest(embeddings, each)[:] for each in others])
    return sum(((embeddings - each).square().sum(dim=1).sum() for each in found), torch.zeros(()))


IMPLEMENTATIONS = {"ours": in_blocks, "at_once": at_once}


def step(name: str, nodes: int) -> Tensor:
    """One step; returns the gradient of the embeddings."""
    embeddings, others = drawn(nodes)
    return torch.autograd.grad(IMPLEMENTATIONS[name](embeddings, others), embeddings)[0]


def seconds(nodes: int) -> dict[str, float]:
    """Median seconds of a step of each implementation, measured in turns."""
    embeddings, others = drawn(nodes)
    times: dict[str, list[float]] = {name: [] for name in IMPLEMENTATIONS}
    for measured in range(-1, STEPS):  # the first warms up
        for name, of in IMPLEMENTATIONS.items():
            start = time.perf_counter()
            torch.autograd.grad(of(embeddings, others), embeddings)
            if measured >= 0:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def peak(name: str, nodes: int) -> float:
    """Growth of the resident set in MiB, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.distances",
        "--memory",
        name,
        "--sizes",
        str(nodes),
    ]
    return float(
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    )


def main() -> None:
    """Measure every size and write ``distances.csv`` and its provenance."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results"), help="folder to write to"
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[1_000, 10_000, 100_000],
        help="numbers of a client's nodes",
    )
    parser.add_argument("--memory", choices=list(IMPLEMENTATIONS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.memory:
        print(json.dumps(growth(lambda: step(arguments.memory, arguments.sizes[0]))))
        return
    rows = []
    for nodes in arguments.sizes:
        times, memory = seconds(nodes), {name: peak(name, nodes) for name in IMPLEMENTATIONS}
        rows.append(
            {
                **{"nodes": nodes, "ours_s": times["ours"], "at_once_s": times["at_once"]},
                **{
                    "speedup": times["at_once"] / times["ours"],
                    "ours_mib": memory["ours"],
                    "at_once_mib": memory["at_once"],
                },
                "equal": torch.equal(step("ours", nodes), step("at_once", nodes)),
            }
        )
        print(rows[-1], file=sys.stderr)
    write_csv(arguments.output / "distances.csv", pd.DataFrame(rows), digits=4)
    write_json(arguments.output / "distances.provenance.json", environment("cpu", 1))


if __name__ == "__main__":
    main()
