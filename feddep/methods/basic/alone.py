"""Models that are trained alone: Global on the entire graph, Local on each client's subgraph."""

from collections.abc import Sequence
from typing import Any

from feddep.training.evaluation import Counts
from feddep.training.evaluator import Evaluator
from feddep.training.history import History
from feddep.training.rounds import run_rounds
from feddep.training.standalone import StandaloneTrainer
from feddep.training.task import RunResult, Task
from feddep.training.together import Together


def train_globally(task: Task, parameters: Any, steps: Any) -> RunResult:
    """One GraphSAGE on the entire graph, no link missing, an epoch a round (FedDEP, Section 4.1;
    GlobSage in FedSage).

    Where owners judge, each client applies it to its own subgraph.  New clients' nodes are not in
    the graph.
    """
    trainer = StandaloneTrainer(task, *task.known, "global")
    owners, model, history = task.evaluation == "owners", trainer.model, History(task.evaluation)
    owned = [
        (Evaluator(graph, task.device, model.aggregation), split)
        for graph, split in (task.subgraphs() if owners else ())
    ]

    def one_round(number: int) -> None:
        losses = [(1, trainer.train())]
        found = (evaluator.counts(model, each, task.setting.metric) for evaluator, each in owned)
        counts = Counts.of(found if owners else [trainer.counts()])
        history.keep([model], losses, counts)
        history.record(losses, counts, counts, [task.test(model)])

    run_rounds(task, history, one_round)
    return RunResult(history, clients=task.client_facts() if owners else [])


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
    owners = task.evaluation == "owners"
    history = History(task.evaluation, together=owners)
    models = [] if owners else [trainer.model for trainer in trainers]
    together = Together(task.stacked)

    def one_round(number: int) -> None:
        found = together.run([trainer.train for trainer in trainers])
        losses = [
            (trainer.learner.size, loss) for trainer, loss in zip(trainers, found, strict=True)
        ]
        # Nobody sends a client another model.
        counts = Counts.of(together.run([trainer.counts for trainer in trainers]))
        history.keep(models, losses, counts)
        history.record(losses, counts, counts, [task.test(model) for model in models])

    run_rounds(task, history, one_round)
    return RunResult(history, clients=task.client_facts())
