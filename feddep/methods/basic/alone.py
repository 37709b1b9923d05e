"""Models that are trained alone: Global on the entire graph, Local on each client's subgraph."""

from collections.abc import Sequence
from typing import Any

from feddep.training.rounds import run_rounds
from feddep.training.standalone import StandaloneTrainer
from feddep.training.task import RunResult, Task


def train_globally(task: Task, parameters: Any, steps: Any) -> RunResult:
    """One GraphSAGE on the entire graph, no link missing, an epoch a round (FedDEP, Section 4.1; GlobSage in FedSage)."""
    trainer = StandaloneTrainer(task, task.graph, task.split, "global")
    run_rounds(task, [trainer.history], lambda number: trainer.round())
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

    def one_round(number: int) -> None:
        for trainer in trainers:
            trainer.round()

    histories = [trainer.history for trainer in trainers]
    run_rounds(task, histories, one_round)
    return RunResult(histories, clients=task.client_facts())
