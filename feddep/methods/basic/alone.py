"""Models that are trained alone: Global on the entire graph, Local on each client's subgraph."""

from collections.abc import Sequence
from typing import Any

from feddep.training.standalone import StandaloneTrainer
from feddep.training.task import RunResult, Task


def train_globally(task: Task, parameters: Any, steps: Any) -> RunResult:
    """One GraphSAGE on the entire graph, no link missing, an epoch a round (FedDEP, Section 4.1; GlobSage in FedSage)."""
    trainer = StandaloneTrainer(task, task.graph, task.split, "global")
    for _ in task.rounds():
        trainer.round()
    return RunResult([trainer.history])


def train_locally(task: Task, parameters: Any, steps: Any) -> RunResult:
    """Each client's GraphSAGE on its own subgraph (FedDEP, Section 4.1; LocSage in FedSage); nothing crosses any boundary."""
    return train_each(
        task, [StandaloneTrainer(task, graph, split, f"client{i}") for i, (graph, split) in enumerate(task.subgraphs())]
    )


def train_each(task: Task, trainers: Sequence[StandaloneTrainer]) -> RunResult:
    """Train one model a client.

    Every model is tested on the global graph's test nodes, and scores are averaged over clients, as both papers do.  Each
    client chooses its round by its own validation nodes.
    """
    for _ in task.rounds():
        for trainer in trainers:
            trainer.round()
    facts = [
        {"client": i, "nodes": graph.num_nodes, "train": len(split.train)} for i, (graph, split) in enumerate(task.subgraphs())
    ]
    return RunResult([trainer.history for trainer in trainers], clients=facts)
