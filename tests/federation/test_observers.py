"""What studies may watch: what methods show of their inner state."""

import dataclasses

import pytest

from feddep.graph.impairing import Impaired
from feddep.methods.shared.impairing_clients import impair_client
from method_tasks import parameters_of, run_on, task_of

FEW = {"generator_local_epochs": 2, "generator_federated_epochs": 2, "generator_batch": 20}


def test_the_training_of_two_parties_is_shown():
    shown = []
    task = dataclasses.replace(task_of("gap"), inspectors=(lambda what, value: shown.append((what, value)),))
    result = run_on(task, "gap")
    before, training = (value for what, value in shown if what == "split training")
    assert before.protocol.design is None
    assert training.task == task
    last = training.evaluate()
    assert last[1] == pytest.approx(result.histories[0].test[-1], abs=0.1)


def test_the_nodes_that_neighgen_draws_are_shown():
    shown = []
    task = dataclasses.replace(task_of("fedsage_plus"), inspectors=(lambda what, value: shown.append((what, value)),))
    parameters = parameters_of("fedsage_plus", **FEW)
    run_on(task, "fedsage_plus", **FEW)
    impaired: list[Impaired] = [impair_client(task, parameters, i, part) for i, part in enumerate(task.subgraphs())]
    epochs = 0
    for client, nodes in (value for what, value in shown if what == "neighgen nodes"):
        epochs += 1
        assert len(nodes) == 20
        assert set(nodes) <= set(impaired[client].kept)
    assert epochs == len(impaired) * 4
