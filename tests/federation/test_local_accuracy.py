"""Test nodes that their owners classify, and validation nodes that are classified as test nodes
are.
"""

import pytest

from feddep.training.evaluator import Evaluator
from feddep.training.summary import summary
from method_tasks import run_on, task_of


def logits_at_best(result, task, graph):
    model = task.new_model()
    model.load_state_dict(result.weights())
    return Evaluator(graph, aggregation=model.aggregation).logits(model).argmax(dim=1).numpy()


@pytest.mark.parametrize("encoder", ["sage", "sage_selfloop", "gcn"])
def test_owners_see_their_own_subgraphs_only(encoder: str):
    task = task_of("fedavg", encoder=encoder)
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


def test_after_its_local_steps_each_owner_has_its_own_model():
    """A single round of FedAvg: every client's model after it is that of the same client alone."""
    task = task_of("fedavg", seed=1, rounds=1)
    federated, alone = summary(run_on(task, "fedavg")), summary(run_on(task, "local"))
    assert federated["local_after"] == alone["local_after"]
    assert federated["local_before"] != federated["local_after"]


@pytest.mark.parametrize("name", ["global", "gap"])
def test_where_nobody_divides_the_graph_local_is_global(name: str):
    reported = summary(run_on(task_of(name), name))
    for local in ("local_before", "local_after"):
        assert reported[local] == pytest.approx(reported["accuracy"])
        assert reported["curve"][local] == pytest.approx(reported["curve"]["test"])
