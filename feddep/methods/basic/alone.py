"""Models that are trained alone: Global on the entire graph, Local on each client's subgraph."""

from collections.abc import Sequence
from typing import Any

from feddep.training.evaluator import Evaluator
from feddep.training.history import OwnersHistory, Scores
from feddep.training.rounds import run_rounds
from feddep.training.standalone import StandaloneTrainer
from feddep.training.task import RunResult, Task


def train_globally(task: Task, parameters: Any, steps: Any) -> RunResult:
    """One GraphSAGE on the entire graph, no link missing, an epoch a round (FedDEP, Section 4.1;
    GlobSage in FedSage).
    """
    trainer = StandaloneTrainer(task, task.graph, task.split, "global")
    if task.owners_judge:
        return _given_to_owners(task, trainer)
    run_rounds(task, [trainer.history], lambda number: trainer.round())
    return RunResult([trainer.history])


def _given_to_owners(task: Task, trainer: StandaloneTrainer) -> RunResult:
    """The model of the entire graph, which each client applies to its own subgraph."""
    judged, model = OwnersHistory(), trainer.model
    parts = [
        (Evaluator(graph, task.device, model.aggregation), split)
        for graph, split in task.subgraphs()
    ]

    def one_round(number: int) -> None:
        loss = trainer.train()
        scores = Scores.of(
            each.scores(model, split.val, split.test, metric=task.setting.metric)
            for each, split in parts
        )
        judged.record(loss, scores, scores, model, task.test(model))

    run_rounds(task, [judged.history], one_round)
    return RunResult([judged.history], clients=task.client_facts(), owners=judged)


def train_locally(task: Task, parameters: Any, steps: Any) -> RunResult:
    """Each client's GraphSAGE on its own subgraph (FedDEP, Section 4.1; LocSage in FedSage);
    nothing crosses any boundary.
    """
    return train_each(
        task,
        [
            StandaloneTrainer(task, graph, split, f"client{i}")
            for i, (graph, split) in enumerate(task.subgraphs())
        ],
    )


def train_each(task: Task, trainers: Sequence[StandaloneTrainer]) -> RunResult:
    """Train one model a client.

    Every model is tested on the global graph's test nodes, and scores are averaged over clients, as
    both papers do.  Each client chooses its round by its own validation nodes.  Where owners judge,
    models are evaluated on their own subgraphs alone, in one round for all.
    """
    judged = OwnersHistory() if task.owners_judge else None

    def one_round(number: int) -> None:
        if judged is None:
            for trainer in trainers:
                trainer.round()
            return
        losses = [(trainer.learner.size, trainer.train()) for trainer in trainers]
        scores = Scores.of(trainer.scores() for trainer in trainers)
        judged.record(
            sum(size * loss for size, loss in losses) / sum(size for size, _ in losses),
            scores,
            scores,
        )

    histories = [trainer.history for trainer in trainers] if judged is None else [judged.history]
    run_rounds(task, histories, one_round)
    return RunResult(histories, clients=task.client_facts(), owners=judged)
