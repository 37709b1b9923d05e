"""Training on all nodes at once, judged by owners: against dense arithmetic, and by counts."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from torch.nn.functional import cross_entropy

from feddep.graph.graph import normalised_adjacency
from feddep.graph.partition import Partition
from feddep.graph.split import within_clients_split
from feddep.training.config import FIELD, TrainingConfig
from feddep.training.evaluator import Evaluator
from feddep.training.learner import FullBatchLearner, new_optimizer
from feddep.training.summary import summary
from feddep.training.task import Task
from graphs import random_graph
from method_tasks import owned_task, run_on

SETTING = {"rounds": 4, "local_epochs": 2, "hidden_channels": 8, "learning_rate": 0.05}
SHARES = {"train": 0.4, "val": 0.3}


def task(**changes: object) -> Task:
    return owned_task("a task", random_graph(60, 150), np.arange(60) % 3, **{**SETTING, **changes})


def test_a_step_is_that_of_dense_arithmetic():
    given = task(dropout=0.0, optimizer="sgd", weight_decay=0.01)
    model = given.new_model()
    evaluator = Evaluator(given.graph, "cpu", model.aggregation)
    learner = FullBatchLearner(evaluator, given.split.train, 0, "test")
    optimizer = new_optimizer(model, given.setting)
    assert FullBatchLearner(evaluator, given.split.train[:0], 0, "").epoch(model, optimizer) == 0

    x = torch.from_numpy(given.graph.features.toarray())
    a = torch.from_numpy(normalised_adjacency(given.graph).toarray())
    y, train = torch.from_numpy(given.graph.labels), torch.from_numpy(given.split.train)
    weights = [weight.detach().clone().requires_grad_() for weight in model.parameters()]
    hidden = (a @ x @ weights[0] + weights[1]).relu()
    loss = cross_entropy((a @ hidden @ weights[2] + weights[3])[train], y[train])
    loss.backward()
    expected = [weight - 0.05 * (weight.grad + 0.01 * weight) for weight in weights]

    assert learner.epoch(model, new_optimizer(model, given.setting)) == pytest.approx(
        float(loss.detach()), rel=1e-5
    )
    torch.testing.assert_close([*model.parameters()], expected, rtol=1e-5, atol=1e-6)


def test_a_penalty_is_added_to_the_gradient_and_not_to_the_loss():
    given = task(dropout=0.0, optimizer="sgd")
    plain, penalised = given.new_model(), given.new_model()
    evaluator = Evaluator(given.graph, "cpu", plain.aggregation)
    losses = []
    for model in (plain, penalised):
        learner = FullBatchLearner(evaluator, given.split.train, 0, "test")
        if model is penalised:
            learner.penalty = lambda model, hidden, logits: (
                3 * hidden.mean() + logits.square().mean()
            )
        losses.append(learner.epoch(model, new_optimizer(model, given.setting)))
    assert losses[0] == losses[1]
    assert not torch.equal(plain.layer0.weight, penalised.layer0.weight)


def test_kept_moments_make_another_training_from_the_second_round_on():
    runs = [run_on(task(optimizer_state=state), "fedavg") for state in ("fresh", "kept")]
    first, second = (run.curve["loss"] for run in runs)
    assert first[0] == second[0]
    assert first[2] != second[2]


@pytest.mark.parametrize("method", ["local", "fedavg", "global"])
def test_owners_judge_before_and_after_the_local_steps(method: str):
    given = task()
    result = run_on(given, method)
    history, reported = result.history, summary(result)
    assert history.evaluation == "owners"
    for when in ("before", "after"):
        rounds = getattr(history, when)
        assert len(rounds) == SETTING["rounds"]
        right = [sum(right for right, _ in scores.validation) for scores in rounds]
        best = rounds[right.index(max(right))].test
        assert reported[f"local_{when}"]["best"] == sum(r for r, _ in best) / sum(
            n for _, n in best
        )
        assert [n for _, n in best] == [len(split.test) for _, split in given.subgraphs()]
    assert np.isnan(reported["accuracy"]["best"]) == (method == "local")
    assert (history.before == history.after) == (method != "fedavg")


def test_shares_within_clients_are_those_of_each_class():
    graph = random_graph(200, 400, seed=1)
    graph = dataclasses.replace(graph, labels=np.where(np.arange(200) < 5, -1, graph.labels))
    partition = Partition(np.arange(200) % 4, 4)
    split = within_clients_split(graph, partition, SHARES, 3)
    sets = [split.train, split.val, split.test]
    assert np.array_equal(np.sort(np.concatenate(sets)), np.arange(5, 200))
    for client in range(4):
        for label in range(graph.num_classes):
            group = np.flatnonzero((partition.client == client) & (graph.labels == label))
            train, val, _ = (len(np.intersect1d(group, part)) for part in sets)
            assert (train, train + val) == (int(0.4 * len(group)), int(0.7 * len(group)))
    assert np.array_equal(split.train, within_clients_split(graph, partition, SHARES, 3).train)
    assert not np.array_equal(split.train, within_clients_split(graph, partition, SHARES, 4).train)


def test_the_fields_setting_is_that_of_the_configuration():
    given = yaml.safe_load(
        (Path(__file__).parents[2] / "config" / "default.yaml").read_text(encoding="utf-8")
    )["settings"]["field"]
    assert TrainingConfig(**FIELD).in_key() == TrainingConfig(**given).in_key()
