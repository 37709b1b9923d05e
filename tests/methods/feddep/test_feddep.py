"""FedDEP's own promises: what is sent, when, and what its ablations are."""

import itertools
from typing import Any

import pytest
import torch

from feddep.federation.boundary import Boundary
from feddep.federation.client import Client
from feddep.methods import registry
from feddep.methods.feddep import without_prototypes
from feddep.methods.feddep.generation import Generator, nearest_in
from feddep.methods.shared.impairing_clients import impair_client
from method_tasks import CLIENTS, ROUNDS, counted, parameters_of, run_on, task_of

SMALL = {
    "prototypes": 4,
    "embedding": 6,
    "pretraining_epochs": 2,
    "generator_epochs": 3,
    "fused": "paper",
    "scale": "paper",
}


def small(name: str, **changes: Any) -> Any:
    return parameters_of(name, **{**SMALL, **changes})


def run(name: str, clients: int = CLIENTS, **changes: Any) -> Any:
    return run_on(task_of("feddep", clients=clients), name, **{**SMALL, **changes})


@pytest.mark.parametrize("clients", [1, 2, 4])
def test_prototypes_are_shared_once_with_exactly_their_bytes(clients):
    communication = run("feddep", clients=clients).communication
    size = 4 * 6 * 4  # C · d_z numbers of 4 bytes
    expected = {(i, "up", "prototypes"): (1, size) for i in range(clients)}
    if clients > 1:
        expected |= {
            (i, "down", "prototypes"): (clients - 1, (clients - 1) * size) for i in range(clients)
        }
    assert counted(communication, "prototypes") == expected
    assert {row["kind"] for row in communication} == {
        "prototypes",
        "model",
        "training",
        "validation",
    }


def watch_training(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every message and when a generator is trained, in the order in which they happen."""
    events: list[str] = []
    cross, train = Boundary.send, Generator.train

    def crossing(
        self: Boundary, client: int, direction: Any, kind: str, payload: Any, about: Any = None
    ) -> Any:
        events.append(kind)
        return cross(self, client, direction, kind, payload, about)

    def training(self: Generator, *args: Any) -> Any:
        events.append("training begins")
        losses = train(self, *args)
        events.append("training ends")
        return losses

    monkeypatch.setattr(Boundary, "send", crossing)
    monkeypatch.setattr(Generator, "train", training)
    return events


def test_generators_are_trained_after_sharing_and_without_sending_anything(monkeypatch):
    events = watch_training(monkeypatch)
    run("feddep")
    sharing = CLIENTS * CLIENTS  # one up and M − 1 down, for each client
    assert events[:sharing] == ["prototypes"] * sharing
    assert events[sharing : sharing + 2 * CLIENTS] == ["training begins", "training ends"] * CLIENTS
    assert set(events[sharing + 2 * CLIENTS :]) == {"model", "training", "validation"}


def test_without_prototypes_every_step_asks_every_other_client(monkeypatch):
    events = watch_training(monkeypatch)
    task = task_of("feddep")
    parameters = small("feddep_wo_proto")
    communication = registry.find("feddep_wo_proto").run(task, parameters).communication
    steps, expected = parameters.generator_epochs, {}
    sizes = [  # slots · d_z numbers of 4 bytes a node
        len(impair_client(task, parameters, i, client).kept) * 5 * 6 * 4
        for i, client in enumerate(task.subgraphs())
    ]
    for i, size in enumerate(sizes):
        of_others = sum(sizes) - size
        expected |= {
            (i, "up", "generated"): (steps, steps * size),
            (i, "down", "gradients"): (2 * steps, 2 * steps * size),
            (i, "down", "generated"): (2 * steps, steps * of_others),
            (i, "up", "gradients"): (2 * steps, steps * of_others),
        }
    assert counted(communication, "prototypes", "generated", "gradients") == expected
    first = events.index("training begins")
    last = len(events) - events[::-1].index("training ends") - 1
    asked = {"generated", "gradients"}
    assert asked <= set(events[first:last])
    assert not asked & {*events[:first], *events[last + 1 :]}


def test_a_remote_search_finds_what_a_search_at_home_would_and_counts_stay_at_home():
    """What crosses has the same size whatever was generated, and empty slots are zero both ways."""
    crossed: list[torch.Tensor] = []
    draws = torch.Generator().manual_seed(0)
    embeddings = [torch.rand(n, 6, generator=draws) for n in (5, 7, 9)]
    chosen = torch.rand(4, 5, generator=draws) < 0.5
    points = torch.rand(int(chosen.sum()), 6, generator=draws)
    kinds = {"generated": {"embeddings": (4, 5, 6)}, "gradients": {"gradients": (4, 5, 6)}}
    boundary = Boundary(
        kinds, [lambda client, direction, kind, payload: crossed.extend(payload.values())]
    )
    asked = without_prototypes.remote_nearest(boundary, 1, embeddings)(points, chosen)
    known = nearest_in([embeddings[0], embeddings[2]])(points, chosen)
    torch.testing.assert_close([*asked], [each[:] for each in known])
    assert len(crossed) == 7
    assert not any(tensor[~chosen].any() for tensor in crossed)


def test_joint_training_goes_on_with_one_generator_a_client_beside_the_federated_classifier(
    monkeypatch,
):
    """Each epoch of a client begins with steps of its DGen, beside the weights that the server has
    sent.
    """
    seen: dict[int, list[Any]] = {}
    given: list[dict[str, torch.Tensor]] = []
    train, load = Generator.train, Client.load

    def loading(self: Client, weights: Any) -> None:
        given.append({name: tensor.clone() for name, tensor in weights.items()})
        load(self, weights)

    def training(self: Generator, classifier: Any, *rest: Any) -> Any:
        assert all(
            torch.equal(given[-1][name], tensor) for name, tensor in classifier.state_dict().items()
        )
        losses = train(self, classifier, *rest)
        assert len(losses) == 3
        seen.setdefault(id(self), []).append(
            torch.nn.utils.parameters_to_vector(self._dgen.parameters()).detach()
        )
        return losses

    monkeypatch.setattr(Generator, "train", training)
    monkeypatch.setattr(Client, "load", loading)
    run(
        "feddep_joint",
        scale="authors",
        generator_optimizer="adam",
        generator_learning_rate=0.01,
        count_bias=1.0,
    )
    assert [len(epochs) for epochs in seen.values()] == [ROUNDS] * CLIENTS
    assert not any(
        torch.equal(*pair) for epochs in seen.values() for pair in itertools.pairwise(epochs)
    )
