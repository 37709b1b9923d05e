"""Clients computed together have, to the last bit, the numbers of clients computed one by one."""

import dataclasses
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from feddep.methods import registry
from feddep.nn.encoders import GCN, GCNLayer
from feddep.nn.sparse import SparseMatrix
from feddep.training.evaluator import Evaluator
from feddep.training.learner import FullBatchLearner, Step, new_optimizer
from feddep.training.task import Task
from feddep.training.together import Together
from feddep.utils.errors import DivergenceError
from graphs import random_graph
from method_tasks import known, owned_task, run_on, same_runs

SETTING = {
    **{"rounds": 3, "local_epochs": 2, "hidden_channels": 16},
    **{"learning_rate": 0.05, "weight_decay": 0.001},
}
FEW = {
    **dict.fromkeys(("pretraining_epochs", "generator_epochs", "encoder_epochs"), 2),
    **dict.fromkeys(("generator_local_epochs", "iterations", "repetitions", "global_steps"), 1),
}
METHODS = [
    name for name, method in registry.methods().items() if method.full_batch and method.partitioned
]


def task_of(name: str = "fedavg", **changes: Any) -> Task:
    """A task of four clients, whose graphs differ in size."""
    sgd = {"optimizer": "sgd", "weight_decay": 0.0} if name in ("scaffold", "fednova") else {}
    owner = np.repeat(np.arange(4), [10, 20, 25, 35])
    return owned_task(name, random_graph(90, 240), owner, **{**SETTING, **sgd, **changes})


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often clients are computed together, by what for."""
    counted: Counter[str] = Counter()
    for name in ("_steps", "_counts"):
        given = getattr(Together, name)
        monkeypatch.setattr(
            Together,
            name,
            lambda self, asked, name=name, given=given: (
                counted.update([name]) or given(self, asked)
            ),
        )
    return counted


def assert_same(task: Task, **options: Any) -> None:
    """Make sure that what is measured, kept and sent is the same, computed together or one by
    one.
    """
    ours, theirs = (
        run_on(dataclasses.replace(task, stacked=stacked), task.name, **options)
        for stacked in (True, False)
    )
    assert same_runs(ours, theirs)
    assert ours.history.before == theirs.history.before
    assert ours.history.after == theirs.history.after


@pytest.mark.parametrize(
    "changes",
    [
        {"encoder": "sage"},
        {"encoder": "mlp", "layers": 3},
        {"encoder": "sage", "layers": 3, "dropout": 0.0},
        {"encoder": "gat"},
        {"encoder": "sgc"},
        {"encoder": "gamlp"},
        {"encoder": "sage_selfloop"},
        {"encoder": "torch_geometric.nn.models.GIN"},
        {"layers": 1},
        {"optimizer": "sgd"},
        {"optimizer_state": "kept"},
        {"evaluation": "method"},
    ],
    ids=str,
)
def test_every_setting_has_the_same_numbers(changes: dict[str, Any]):
    assert_same(task_of(**changes))


@pytest.mark.parametrize("encoder", ["gcn", "sage", "mlp", "gat"])
@pytest.mark.parametrize("fused", ["authors", "chained"])
def test_mended_embeddings_have_the_same_numbers(encoder: str, fused: str):
    """Of generators that generate something at every client."""
    options = {"count_bias": 3.0, "pretraining_epochs": 1, "embedding": 7, "fused": fused}
    assert_same(task_of("feddep", encoder=encoder, layers=3, weight_decay=0.01), **options)


@pytest.mark.parametrize("lacking", ["train", "val", "test"])
def test_clients_without_nodes_of_a_set_change_nothing(lacking: str):
    task = task_of()
    kept = getattr(task.split, lacking)
    split = dataclasses.replace(task.split, **{lacking: kept[kept >= 20]})
    assert_same(dataclasses.replace(task, split=split))


def steps_of(task: Task, **options: Any) -> list[Step]:
    """The first step of each client, by an optimiser of its own with these ``options`` last."""
    steps = []
    for i, (graph, split) in enumerate(task.subgraphs()):
        model = task.new_model()
        evaluator = Evaluator(graph, "cpu", model.aggregation)
        learner = FullBatchLearner(evaluator, split.train, 0, f"client{i}")
        steps.append(Step(learner, model, new_optimizer(model, task.setting)))
    steps[-1].optimizer.param_groups[0].update(options)
    return steps


class DoubledLayer(GCNLayer):
    def full(self, x: Any, adjacency: SparseMatrix) -> torch.Tensor:
        return 2 * super().full(x, adjacency)


class DoubledGCN(GCN):
    @staticmethod
    def new_layer(inputs: int, outputs: int, last: bool) -> DoubledLayer:
        return DoubledLayer(inputs, outputs)


def test_layers_that_compute_something_else_are_left_alone():
    task, together = task_of(), Together()
    alone, mixed = steps_of(task), steps_of(task)
    alone, mixed = (
        [
            Step(step.learner, model, new_optimizer(model, task.setting))
            for step in steps
            for model in [task.drawn(DoubledGCN(*task.model_sizes))]
        ]
        for steps in (alone, mixed)
    )
    assert together.run(epochs(mixed)) == [step.alone() for step in alone]
    assert all(map(torch.equal, weights_of(alone), weights_of(mixed)))


def epochs(steps: list[Step]) -> list[Callable[[], float]]:
    return [partial(step.learner.epoch, step.model, step.optimizer) for step in steps]


def weights_of(steps: list[Step]) -> list[torch.Tensor]:
    return [weight.detach().clone() for step in steps for weight in step.model.parameters()]


@pytest.mark.parametrize("options", [{}, {"lr": 0.3}, {"betas": (0.5, 0.9)}], ids=str)
def test_steps_together_and_alone_may_alternate(options: dict[str, Any]):
    """An optimiser's state is the client's own, and a rate that changes counts."""
    task = task_of()
    alone, mixed, together = steps_of(task, **options), steps_of(task, **options), Together()
    for turn in range(6):
        for step in alone:
            step.alone()
        chosen = [each for i, each in enumerate(mixed) if turn % 2 == 0 or i in (1, 3)]
        together.run(epochs(chosen))
        for step in mixed:
            if step not in chosen:
                step.alone()
        for step in (alone[0], mixed[0]):
            step.optimizer.param_groups[0]["lr"] *= 0.9
    assert all(map(torch.equal, weights_of(alone), weights_of(mixed)))


def test_weights_that_are_replaced_are_used():
    task = task_of(dropout=0.0)
    steps, together = steps_of(task), Together()
    alone = steps_of(task)
    for turn in range(3):
        for each in (*steps, *alone):
            for weight in each.model.parameters():
                weight.data = torch.full_like(weight, 0.1 * (turn + 1)).cumsum(0)
        together.run(epochs(steps))
        for step in alone:
            step.alone()
        assert all(map(torch.equal, weights_of(steps), weights_of(alone)))


def test_what_changes_on_the_way_is_used():
    """Frozen weights, other training nodes, another rate of dropout."""
    task, together = task_of(), Together()
    alone, mixed = steps_of(task), steps_of(task)
    for turn in range(4):
        for step in (*alone, *mixed):
            if turn == 1:
                step.model.layers[0].weight.requires_grad_(requires_grad=False)
            if turn == 2:
                step.learner.nodes, step.learner.labels = (
                    step.learner.nodes[:2],
                    step.learner.labels[:2],
                )
            if turn == 3:
                step.model.dropout = 0.1
        losses = together.run(epochs(mixed))
        assert losses == [step.alone() for step in alone]
        assert all(map(torch.equal, weights_of(alone), weights_of(mixed)))


def test_one_model_of_several_clients_stays_one():
    """Clients that are evaluated with the same object are not stacked."""
    task, together = task_of(), Together()
    model = task.new_model()
    counts = [
        partial(Evaluator(graph, "cpu", model.aggregation).counts, model, split)
        for graph, split in task.subgraphs()
    ]
    assert together.run(counts) == [each() for each in counts]


def test_divergence_names_the_client():
    steps = steps_of(task_of())
    with torch.no_grad():
        steps[2].model.layers[0].weight[3, 3] = torch.nan
    with pytest.raises(DivergenceError, match="client2"):
        Together().run(epochs(steps))


ALONE = {
    *("fedsage_plus", "fedsage_plus_shared", "locsage_plus"),
    *("adafgl", "fedgcn_noised", "fedgraph", "fedgsl", "fediih", "fedlap", "fedspray", "fedstar"),
    *("fedstar_local", "fedstruct", "fedtgp"),
}
"""Methods whose clients have local steps of their own, or whose classifiers read more than features
and edges, such as mended neighbours, noise, structure, what others have sent, or answer otherwise.
"""


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_the_same_numbers(name: str, calls: Counter[str]):
    assert_same(task_of(name), **known(name, FEW))
    assert (calls["_steps"] == 0) == (name in ALONE)


def test_it_is_chosen_by_size_and_by_the_task(calls: Counter[str]):
    run_on(dataclasses.replace(task_of(), stacked=False), "fedavg")
    assert not calls
    run_on(task_of(), "fedavg")
    assert calls["_steps"] == 6
