"""What studies may watch: every message that is counted, and what methods show of their inner state."""

import dataclasses
import itertools
from typing import Any

import pytest

from feddep.federation.communication import CommunicationLog
from feddep.graph.impairing import Impaired
from feddep.methods.shared.impairing_clients import impair_client
from method_tasks import parameters_of, run_on, task_of

FEW = {
    "pretraining_epochs": 2,
    "generator_local_epochs": 2,
    "generator_federated_epochs": 2,
    "generator_epochs": 2,
    "episodes": 1,
}


def few(name: str) -> dict[str, Any]:
    return {key: value for key, value in FEW.items() if key in type(parameters_of(name)).model_fields}


@pytest.mark.parametrize("name", ["fedavg", "scaffold", "feddep", "feddep_wo_proto", "fedsage_plus", "fedgnn", "fedgraph", "gap"])
def test_observers_see_every_message_that_is_counted(name: str):
    seen = CommunicationLog()

    def observe(client, direction, kind, payload):
        seen.count(client, direction, kind, sum(tensor.numel() * tensor.element_size() for tensor in payload.values()))

    result = run_on(dataclasses.replace(task_of(name), observers=(observe,)), name, **few(name))
    assert result.communication == seen.rows()


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
    task = dataclasses.replace(task, observers=(lambda *message: shown.append(message),))
    parameters = parameters_of("fedsage_plus", **few("fedsage_plus"), generator_batch=20)
    run_on(task, "fedsage_plus", **few("fedsage_plus"), generator_batch=20)
    impaired: list[Impaired] = [impair_client(task, parameters, i, part) for i, part in enumerate(task.subgraphs())]
    epochs = 0
    for now, following in itertools.pairwise(shown):
        if now[0] == "neighgen nodes":
            client, nodes = now[1]
            epochs += 1
            assert len(nodes) == 20
            assert set(nodes) <= set(impaired[client].kept)
            if len(following) == 4:  # what is asked next is about these nodes
                assert following[0] == client
                assert len(following[3]["embeddings"]) == len(nodes)
    assert epochs == len(impaired) * 4
