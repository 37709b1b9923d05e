"""A round of FedAvg beside the kernels that it is made of.

    python -m benchmarks.roofline --graphs results/graphs --output benchmarks/results

The setting is that of :mod:`benchmarks.rounds`.  The operations of a round, as PyTorch dispatches
them, are recorded with their arguments and called once more, one kind after the other: that is
their own time, which a round of these operations cannot go below.  Views take none.  Rounds and
kernels alternate in one process; times are medians, in seconds of the processor.
"""

import statistics
import time
from collections.abc import Sequence
from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure
from tqdm import tqdm

from benchmarks.arguments import parser_of
from benchmarks.rounds import TURNS, operations, seconds, task_of
from feddep.experiment.provenance import environment
from feddep.graph.graph import Graph
from feddep.reporting import drawing
from feddep.reporting.labels import dataset_title
from feddep.reporting.output import write
from feddep.utils.csv_files import write_csv
from feddep.utils.files import write_json

KINDS = {
    "_embedding_bag_forward_only": "sparse products",
    "mm": "dense products",
    "_fused_adam_": "Adam",
    **dict.fromkeys(("random_", "ge"), "dropout masks"),
    **dict.fromkeys(("slice", "detach", "view", "t", "select", "lift_fresh", "unbind"), "views"),
}
"""Kinds of operations by the names of those in ATen; others are element by element."""
OTHERS = "others"


def kinds_of(calls: Sequence[tuple[Any, Any, Any]]) -> dict[str, list[tuple[Any, Any, Any]]]:
    """The operations by kind, without views."""
    found: dict[str, list[tuple[Any, Any, Any]]] = {kind: [] for kind in (*KINDS.values(), OTHERS)}
    for call in calls:
        if call[0].namespace == "aten":
            found[KINDS.get(call[0].overloadpacket.__name__, OTHERS)].append(call)
    del found["views"]
    return found


@torch.no_grad()
def own_seconds(calls: Sequence[tuple[Any, Any, Any]]) -> float:
    """Time of the operations by themselves."""
    start = time.process_time()
    for operation, arguments, options in calls:
        operation(*arguments, **options)
    return time.process_time() - start


def measured(graph: Graph) -> dict[str, float]:
    """Milliseconds of a round on a graph, of its kernels, and their ratio."""
    task = task_of(graph, "fedavg")
    kinds = kinds_of(operations(task, True))
    turns = [
        {"round": seconds(task, True), **{kind: own_seconds(kinds[kind]) for kind in kinds}}
        for _ in range(TURNS)
    ]
    found = {name: 1000 * statistics.median(turn[name] for turn in turns) for name in turns[0]}
    kernels = sum(found[kind] for kind in kinds)
    return {**found, "kernels": kernels, "ratio": found["round"] / kernels}


def plot(table: pd.DataFrame) -> Figure:
    """Times of kernels of each graph on top of one another, and what a round takes beside them."""
    kinds = [name for name in table if name not in ("dataset", "round", "kernels", "ratio")]
    titles = table["dataset"].map(dataset_title)
    with drawing.style():
        figure, ((ax,),) = drawing.panels(1, 1, 2.2)
        table[kinds].set_axis(titles).plot.barh(
            stacked=True, ax=ax, color=drawing.COLOURS, legend=False
        )
        ax.plot(table["round"], range(len(table)), "|", color=drawing.INK, ms=14, label="a round")
        ax.set(xlabel="milliseconds of the processor", ylabel="")
        ax.invert_yaxis()
        ends = table["ratio"].set_axis(titles).sort_values()
        drawing.head(
            figure,
            f"A round takes {ends.iloc[0]:.2f} times as long as its operations on {ends.index[0]}, "
            f"{ends.iloc[-1]:.2f} times on {ends.index[-1]}\n"
            "A round of FedAvg, and its operations each called once more by itself",
            ax.get_legend_handles_labels()[0],
        )
    return figure


def main() -> None:
    """Measure the graphs; write ``roofline.csv``, its provenance and its figure."""
    arguments = parser_of(__doc__).parse_args()
    torch.set_num_threads(arguments.threads)
    rows = [
        {"dataset": name, **measured(Graph.load(arguments.graphs / f"{name}.safetensors"))}
        for name in tqdm(arguments.datasets)
    ]
    table = pd.DataFrame(rows)
    write_csv(arguments.output / "roofline.csv", table, digits=4)
    write(arguments.output, {"roofline": plot(table)})
    write_json(arguments.output / "roofline.provenance.json", environment("cpu", arguments.threads))


if __name__ == "__main__":
    main()
