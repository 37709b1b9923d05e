"""A round of full batches: clients computed together beside clients computed one by one.

    python -m benchmarks.rounds --graphs results/graphs --output benchmarks/results

Ten clients of Louvain communities, in the setting of the field's comparison.  Both ways have the
same numbers to the last bit, which is checked first.  Then runs of the two alternate in one
process, and the ratio is that of the medians of their rounds, in seconds of the processor.
Operations are those that PyTorch dispatches in a round: what a GPU would be sent.
"""

import dataclasses
import statistics
import time
from typing import Any

import pandas as pd
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from tqdm import tqdm

from benchmarks.arguments import parser_of
from feddep.experiment.provenance import environment
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition, louvain
from feddep.graph.split import within_clients_split
from feddep.methods import registry
from feddep.training.config import PROTOCOLS, TrainingConfig
from feddep.training.task import RunResult, Task
from feddep.utils.files import write_json, write_text

METHODS = (
    *("fedavg", "fedprox", "scaffold", "feddc", "fedgta", "fedper", "fedala", "gcfl_plus"),
    *("ditto", "moon", "fedproto", "fedpub", "fedaux", "local"),
)
ROUNDS, TURNS, WARM = 12, 3, 2
SGD = {"optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.0}


def task_of(graph: Graph, name: str, partition: Partition | None = None) -> Task:
    """The method's task on a graph, by default of Louvain communities."""
    field = PROTOCOLS["field"]
    partition = partition or louvain(graph, field["clients"], 0)
    shares = {part: field["split"][part] for part in ("train", "val")}
    split = within_clients_split(graph, partition, shares, 0)
    changes = SGD if name == "scaffold" else {}
    setting = TrainingConfig(**{**field["setting"], **changes, "rounds": ROUNDS})
    return Task(name, graph, split, partition, setting, 0, evaluation="owners")


class Operations(TorchDispatchMode):
    """Records operations.

    Attributes:
        calls: each with its arguments, since the list was last replaced.
    """

    def __init__(self) -> None:
        """Begin without any."""
        super().__init__()
        self.calls: list[tuple[Any, Any, Any]] = []

    def __torch_dispatch__(
        self, operation: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        self.calls.append((operation, arguments, options or {}))
        return operation(*arguments, **(options or {}))


def run(task: Task, together: bool, on_round: Any = None) -> RunResult:
    """The result of the task's method."""
    method = registry.find(task.name)
    given = dataclasses.replace(task, stacked=together, on_round=on_round)
    return method.run(given, method.parameters())


def seconds(task: Task, together: bool) -> float:
    """Median time of a round after the first ones."""
    ends: list[float] = []
    run(task, together, lambda _: ends.append(time.process_time()))
    return statistics.median(
        end - start for start, end in zip(ends[WARM:], ends[WARM + 1 :], strict=False)
    )


def operations(task: Task, together: bool) -> list[tuple[Any, Any, Any]]:
    """Operations of the last round, each with its arguments."""
    last: list[tuple[Any, Any, Any]] = []

    def end(_: Any) -> None:
        last[:], mode.calls = mode.calls, []

    with Operations() as mode:
        run(task, together, end)
    return last


def measured(graph: Graph, name: str) -> dict[str, Any]:
    """The row of a method on a graph.

    Raises:
        RuntimeError: if the two ways differ in a number.
    """
    task = task_of(graph, name)
    ours, theirs = (run(task, together) for together in (True, False))
    if ours.curve != theirs.curve:
        raise RuntimeError(f"{name} has other numbers when its clients are computed together")
    pairs = [(seconds(task, True), seconds(task, False)) for _ in range(TURNS)]
    together, alone = (statistics.median(each) for each in zip(*pairs, strict=True))
    return {
        "method": name,
        "together_ms": round(1000 * together, 2),
        "one_by_one_ms": round(1000 * alone, 2),
        "ratio": round(statistics.median(b / a for a, b in pairs), 2),
        "operations_together": len(operations(task, True)),
        "operations_one_by_one": len(operations(task, False)),
    }


def main() -> None:
    """Measure the graphs and write ``rounds.csv``."""
    parser = parser_of(__doc__)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rows = []
    for dataset in arguments.datasets:
        graph = Graph.load(arguments.graphs / f"{dataset}.safetensors")
        for name in tqdm(arguments.methods, dataset):
            rows.append({"dataset": dataset, **measured(graph, name)})
    table = pd.DataFrame(rows)
    write_text(arguments.output / "rounds.csv", table.to_csv(index=False))
    write_json(arguments.output / "rounds.provenance.json", environment("cpu", arguments.threads))
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
