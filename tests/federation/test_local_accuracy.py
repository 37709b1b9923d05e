"""Test nodes that their owners classify, and validation nodes that are classified as test nodes are."""

import dataclasses

import numpy as np
import pytest

from feddep.graph.halo import with_halo
from feddep.methods.basic import fedavg
from feddep.training.evaluator import Evaluator
from feddep.training.summary import summary
from method_tasks import run_on, task_of


def logits_at_best(result, task, graph):
    model = task.new_model()
    model.load_state_dict(result.histories[0].best_weights)
    return Evaluator(graph, aggregation=model.aggregation).logits(model).argmax(dim=1).numpy()


@pytest.mark.parametrize("encoder", ["sage", "sage_selfloop", "gcn"])
def test_owners_see_their_own_subgraphs_only(encoder: str):
    task = task_of("fedavg")
    task = dataclasses.replace(task, setting=task.setting.replace(encoder=encoder))
    result = run_on(task, "fedavg")
    right, nodes = 0, 0
    for graph, split in task.subgraphs():
        found = logits_at_best(result, task, graph)
        right += int((found == graph.labels)[split.test].sum())
        nodes += len(split.test)
    assert nodes == len(task.split.test)
    assert summary(result)["local_before"]["best"] == right / nodes


def test_validation_as_tested_is_on_the_global_graph():
    task = task_of("fedavg")
    result = run_on(task, "fedavg")
    found = logits_at_best(result, task, task.graph)
    expected = float((found == task.graph.labels)[task.split.val].mean())
    assert summary(result)["global_validation"]["best"] == pytest.approx(expected)


def test_with_complete_neighbourhoods_owners_are_as_good_as_anybody():
    task = task_of("fedavg_oracle")
    reported = summary(run_on(task, "fedavg_oracle"))
    assert reported["local_before"]["best"] == pytest.approx(reported["accuracy"]["best"])


def test_alone_each_owner_has_a_model_of_its_own():
    task = task_of("local")
    result = run_on(task, "local")
    counts = [history.local_before[history.best_round - 1] for history in result.histories]
    reported = summary(result)
    assert reported["local_before"]["best"] == sum(right for right, _ in counts) / len(task.split.test)
    assert reported["local_after"] == reported["local_before"]


def test_after_its_local_steps_each_owner_has_its_own_model():
    """A single round of FedAvg: every client's model after it is that of the same client alone."""
    task = task_of("fedavg")
    task = dataclasses.replace(task, setting=task.setting.replace(rounds=1))
    federated, alone = summary(run_on(task, "fedavg")), summary(run_on(task, "local"))
    assert federated["local_after"] == alone["local_after"]
    assert federated["local_before"] != federated["local_after"]


@pytest.mark.parametrize("name", ["global", "gap"])
def test_where_nobody_divides_the_graph_local_is_global(name: str):
    reported = summary(run_on(task_of(name), name))
    for local in ("local_before", "local_after"):
        assert reported[local] == pytest.approx(reported["accuracy"])
        assert reported["curve"][local] == pytest.approx(reported["curve"]["test"])


def test_an_evaluator_counts_several_sets_at_once():
    task = task_of("fedavg")
    _, split = task.subgraphs()[0]
    extended = with_halo(task.graph, task.partition.nodes(0), 1)
    evaluator, model = Evaluator(extended), fedavg.run(task).histories[0]
    trained = task.new_model()
    trained.load_state_dict(model.best_weights)
    both = evaluator.correct(trained, split.val, split.test)
    assert both == [evaluator.correct(trained, each)[0] for each in (split.val, split.test)]
    assert evaluator.correct(trained, np.zeros(0, dtype=np.int64), split.val) == [0, both[0]]
