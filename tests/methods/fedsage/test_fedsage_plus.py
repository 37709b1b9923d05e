"""What FedSage+ sends, and when; what its gradients give away; and what its ablations are."""

import dataclasses
from typing import Any

import pytest
import torch

from feddep.federation.boundary import Boundary
from feddep.methods.basic import fedavg
from feddep.methods.fedsage import cross_client, fedsage_plus
from feddep.methods.fedsage.cross_client import GRADIENTS, REQUEST, Peer, ask_others
from feddep.methods.fedsage.neighgen import NeighbourGenerator
from feddep.utils import seeding
from method_tasks import CLIENTS, counted, observed, parameters_of, steps_of, task_of
from small_models import drawn

LOCAL, FEDERATED = 2, 3
SMALL = {
    "embedding": 6,
    "generator_width": 8,
    "generator_batch": 10,
    "generator_local_epochs": LOCAL,
}
SMALL |= {"generator_federated_epochs": FEDERATED}


def small(name: str = "fedsage_plus", **changes: Any) -> Any:
    return parameters_of(name, **{**SMALL, **changes})


def generator_of(name: str, parameters: Any, clients: int = CLIENTS) -> Any:
    return steps_of(name, task_of("fedsage_plus", clients=clients), parameters)["generator"]


def test_messages_follow_algorithm_1_in_order():
    """Procedures C, A (line 9), D and A (line 14), epoch after epoch, and nothing before the local
    epochs are over.
    """
    events = [each[:3] for each in observed(task_of("fedsage_plus"), "fedsage_plus", **SMALL)[1]]
    expected = []
    for i in range(CLIENTS):
        epoch = [(i, "up", REQUEST)]
        for j in range(CLIENTS):
            if j != i:
                epoch += [(j, "down", REQUEST), (j, "up", GRADIENTS)]
        expected += [*epoch, (i, "down", GRADIENTS)] * FEDERATED
    assert [event for event in events if event[2] in (REQUEST, GRADIENTS)] == expected
    kinds = [kind for *_, kind in events]
    last = max(events.index((i, "up", REQUEST)) for i in range(CLIENTS))
    assert not {"model", "training", "validation"} & set(kinds[:last])


def test_nothing_is_sent_without_others():
    assert generator_of("fedsage_plus", small(), clients=1).communication == []
    assert (
        generator_of(
            "locsage_plus", small("locsage_plus", generator_federated_epochs=0)
        ).communication
        == []
    )
    assert generator_of("fedsage_plus", small(generator_federated_epochs=0)).communication == []


def request_and_peers(slots: int = 2, nodes: int = 3, scale: str = "paper") -> Any:
    """A generator that fills all slots of ``nodes`` nodes, and clients that can be asked about
    it.
    """
    task = task_of("fedsage_plus")
    params = small(max_generated=slots, scale=scale)
    generator = drawn(NeighbourGenerator(64, 6, slots, 8, task.setting.dropout), 1)
    with torch.no_grad():
        generator.number.bias.fill_(slots)
        generator.number.weight.zero_()
    z = torch.rand(nodes, 6, generator=torch.Generator().manual_seed(2))
    features = [graph.features for graph, _ in task.subgraphs()]
    return task, params, generator, {**generator.state_dict(), "embeddings": z}, features


@pytest.mark.parametrize("scale", ["paper", "authors"])
def test_an_answer_is_the_gradient_of_the_nearest_node_s_distance(scale):
    """Against a loop over generated neighbours and all nodes of the client that is asked."""
    task, params, generator, request, features = request_and_peers(scale=scale)
    answer = Peer(task, params, 2, features[2]).answer(
        0, {k: v.clone() for k, v in request.items()}
    )
    draws = torch.Generator().manual_seed(seeding.derive_seed(task.seed, "client2", "answers", 0))
    generated = generator.train()(request["embeddings"], draws)
    x = torch.from_numpy(features[2].toarray())
    loss = torch.zeros(())
    for point in generated.features:
        loss = loss + min(((point - row) ** 2).sum() for row in x)
    loss = loss / 3 / (1 if scale == "paper" else 2 * 64)
    loss.backward()
    expected = {
        name: weight.grad
        for name, weight in generator.named_parameters()
        if not name.startswith("number.")
    }
    torch.testing.assert_close(answer, expected)


def test_the_server_adds_up_what_the_others_answer():
    task, params, _, request, features = request_and_peers()
    shapes = {name: tuple(tensor.shape) for name, tensor in request.items()}
    of_features = {
        name: shape
        for name, shape in shapes.items()
        if name != "embeddings" and cross_client.is_of_features(name)
    }
    boundary = Boundary({REQUEST: shapes, GRADIENTS: of_features})
    others = {j: Peer(task, params, j, features[j]) for j in (1, 2)}
    total = ask_others(boundary, 0, others, request)
    alone = [
        Peer(task, params, j, features[j]).answer(
            0, {name: tensor.clone() for name, tensor in request.items()}
        )
        for j in (1, 2)
    ]
    expected = {name: gradient + alone[1][name] for name, gradient in alone[0].items()}
    torch.testing.assert_close(total, expected)


def test_a_gradient_gives_a_node_s_features_away():
    """As the module says: one generated neighbour in a slot, and weights and gradients yield the
    nearest node exactly.
    """
    task, params, generator, request, features = request_and_peers(nodes=1, slots=1)
    answer = Peer(task, params, 1, features[1]).answer(
        0, {k: v.clone() for k, v in request.items()}
    )
    delta, outer = answer["heads.0.bias"], answer["heads.0.weight"]
    hidden = outer.T @ delta / delta.square().sum()
    point = generator.heads[0](hidden).tanh()
    stolen = point - delta / (2 * (1 - point.square()))
    rows = torch.from_numpy(features[1].toarray())
    assert (rows - stolen).abs().amax(dim=1).min() < 1e-4
    assert stolen.abs().max() > 0.5


def test_nothing_generated_is_answered_with_zeros():
    task, params, _, request, features = request_and_peers()
    request["number.bias"] = torch.zeros(1)
    answer = Peer(task, params, 1, features[1]).answer(0, request)
    assert answer
    assert not any(gradient.any() for gradient in answer.values())


def test_the_first_epochs_are_locsage_plus_s_and_then_others_matter():
    local = generator_of(
        "locsage_plus", small("locsage_plus", generator_federated_epochs=0)
    ).tensors
    ours, unheard = (
        generator_of("fedsage_plus", small(**how)).tensors for how in ({}, {"cross_weight": 0.0})
    )
    assert torch.equal(ours["client1.loss"][:LOCAL], local["client1.loss"])
    assert not torch.equal(ours["client1.loss"], unheard["client1.loss"])


def test_without_generated_neighbours_it_is_fedavg():
    """To the last bit, and LocSage+ is Local."""
    task, parameters = task_of("fedsage_plus"), small()
    made = steps_of("fedsage_plus", task, parameters)["generator"]
    nothing = {
        name: tensor[:0] if "owner" in name or "features" in name else tensor
        for name, tensor in made.tensors.items()
    }
    ours = fedsage_plus.run(
        task, parameters, {"generator": dataclasses.replace(made, tensors=nothing)}
    )
    theirs = fedavg.run(task)
    assert ours.curve["loss"] == theirs.curve["loss"]
    assert ours.curve["test"] == theirs.curve["test"]
    kinds = "model", "training", "validation"
    assert counted(ours.communication, *kinds) == counted(theirs.communication)
