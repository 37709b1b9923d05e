"""FedAvg as it is, and what each client predicts for its own nodes in every round, for rules that
change predictions afterwards.

The training is that of :mod:`feddep.methods.basic.fedavg`, with the same streams, so that every
number is FedAvg's.  It is a step: all rules and all their parameters share one training.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep.federation.client import Client
from feddep.methods.answers import LabelPrivacy
from feddep.methods.basic import fedavg
from feddep.methods.method import StepResult, by_client
from feddep.privacy.randomised_response import randomised_response
from feddep.training.evaluation import ClassCounts, CorrectCount, Counts, GlobalAccuracy
from feddep.training.evaluator import evaluated, evaluated_nodes
from feddep.training.history import History
from feddep.training.rounds import run_rounds
from feddep.training.task import RunResult, Task
from feddep.utils.seeding import generator

MEASURED = ("loss", "validation", "test", "global_validation")
"""Series of a history beside local accuracies."""
Rule = Callable[[int, np.ndarray], np.ndarray]
"""Called with a client's number and the logits of its nodes, shape (n_i, C); gives scores, of which
the largest is the class.
"""


class RecordingClient(Client):
    """A client of FedAvg that keeps the logits of its nodes after its local steps and with the
    weights that it is sent then.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        """Set up a client, as :class:`feddep.federation.client.Client`."""
        super().__init__(*args, **options)
        self.after: list[Tensor] = []
        self.before: list[Tensor] = []

    def evaluate(self, report: bool) -> tuple[CorrectCount, CorrectCount, ClassCounts]:
        """FedAvg's clients report what they received, and nothing after their local steps."""
        moment = self.before if report else self.after
        moment.append(self.evaluator.logits(self.model).cpu())
        return super().evaluate(report)


def train(task: Task, parameters: Any = None, results: Any = None) -> StepResult:
    """FedAvg on the clients' subgraphs.

    Returns:
        ``client0.before`` …, logits of the client's nodes in each of R rounds, float32, shape (R,
        n_i, C), with the model that it receives at the end of the round; ``client0.after`` …, with
        its own after the local steps; ``history.loss`` and whatever else :data:`MEASURED` names,
        float64, shape (R,); and the weights at the best round as ``classifier.NAME``.
    """
    clients: list[RecordingClient] = []

    def client(*args: Any, **options: Any) -> Client:
        clients.append(RecordingClient(*args, **options))
        return clients[-1]

    result = fedavg.train_on(task, task.subgraphs(), client)
    measured = {
        **result.curve,
        "global_validation": [each.validation for (each,) in result.history.on_graph],
    }
    kept = {
        f"history.{name}": torch.tensor(measured[name], dtype=torch.float64) for name in MEASURED
    }
    weights = {f"classifier.{name}": tensor for name, tensor in result.weights().items()}
    logits = by_client(
        before=[torch.stack(each.before) for each in clients],
        after=[torch.stack(each.after) for each in clients],
    )
    return StepResult({**logits, **kept, **weights}, result.communication)


def train_on_private_labels(
    task: Task, parameters: LabelPrivacy, results: Any = None
) -> StepResult:
    """The same on :func:`private_labels`."""
    return train(private_labels(task, parameters.label_epsilon))


def private_labels(task: Task, epsilon: float) -> Task:
    """The task where randomised response has replaced each label of a training or validation node
    once, at each call alike.

    All that clients send is computed from these labels, and validation accuracies are by them.
    Features are not covered.
    """
    graph, read = task.graph, np.concatenate([task.split.train, task.split.val])
    labels = graph.labels.copy()
    labels[read] = randomised_response(
        labels[read], graph.num_classes, epsilon, generator(task.seed, "labels")
    )
    return dataclasses.replace(task, graph=dataclasses.replace(graph, labels=labels))


def at_best_round(step: StepResult) -> list[np.ndarray]:
    """Logits of each client's nodes with the weights of the best round on validation nodes, shape
    (n_i, C).
    """
    best = int(step.tensors["history.validation"].argmax())
    return [logits[best].numpy() for logits in step.of_clients("before")]


def changed(
    task: Task, step: StepResult, rule: Rule, communication: Sequence[dict[str, Any]]
) -> RunResult:
    """The result of FedAvg, with local accuracies by what a rule makes of predictions; all else is
    FedAvg's.

    ``rule`` is given the predictions of every round, so that curves can be drawn.  What crossed the
    boundary for it is ``communication``.  Where owners judge, they choose their round by what the
    rule makes of their validation nodes.
    """
    measured = [step.tensors[f"history.{name}"].tolist() for name in MEASURED]
    model = task.new_model()
    weights = {
        name: tensor for name, tensor in step.tensors.items() if name.startswith("classifier.")
    }
    model.load_state_dict(
        {name.removeprefix("classifier."): tensor for name, tensor in weights.items()}
    )
    owners, parts = task.evaluation == "owners", task.subgraphs()
    history = History(task.evaluation)

    counter = evaluated(parts)

    def counts(moment: str, number: int) -> Counts:
        logits = [
            rule(i, of[number - 1].numpy())[evaluated_nodes(parts[i][1])]
            for i, of in enumerate(step.of_clients(moment))
        ]
        found = counter.counts(torch.from_numpy(np.concatenate(logits)), task.setting.metric)
        return Counts.of(found)

    def one_round(number: int) -> None:
        before, after = (counts(moment, number) for moment in ("before", "after"))
        loss, validation, *on_graph = (values[number - 1] for values in measured)
        if not owners:  # FedAvg's, of which the step keeps only the share
            before = before._replace(validation=((validation, 1),))
        history.keep([model], [(1, loss)], before)
        history.record([(1, loss)], before, after, [GlobalAccuracy(*on_graph)])

    run_rounds(task, history, one_round)
    return RunResult(history, list(communication), task.client_facts() if owners else [])
