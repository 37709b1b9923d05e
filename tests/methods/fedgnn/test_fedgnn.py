"""FedGNN's own promises: what is sent, who can read it, and what noise does."""

import numpy as np
import pytest

from feddep.federation.boundary import Boundary
from feddep.methods.fedgnn import fedgnn
from feddep.methods.shared import routing
from feddep.methods.shared.cross_edges import cross_edges
from feddep.privacy.dpsgd import Privacy, PrivateLearner
from feddep.training.learner import Learner
from method_tasks import CLIENTS, ROUNDS, task_of, train, watch

FREE = {"sigma": 0.0, "clip": 1e6}


def run(clients=CLIENTS, **parameters):
    return train("fedgnn", clients=clients, **parameters)


def test_of_one_client_without_dp_sgd_it_is_fedavg(monkeypatch):
    monkeypatch.setattr(fedgnn, "PrivateLearner", lambda *given, privacy: Learner(*given))
    ours, plain = run(1, **FREE), train("fedavg", clients=1)
    np.testing.assert_allclose(ours.curve["loss"], plain.curve["loss"], rtol=1e-4)
    assert {row["kind"] for row in ours.communication} == {
        row["kind"] for row in plain.communication
    }


@pytest.mark.parametrize(("refresh", "times"), [(1, ROUNDS + 1), (2, 3), (100, 1)])
def test_embeddings_are_renewed_as_often_as_asked_for(refresh, times):
    communication = run(refresh=refresh, **FREE).communication
    assert {row["messages"] for row in communication if row["kind"].startswith("embeddings")} == {
        times
    }


def test_the_third_party_matches_names_that_say_nothing_of_the_nodes():
    task = task_of("fedgnn")
    all_edges, messages = cross_edges(task), {}
    boundary = Boundary(
        routing.name_kinds(all_edges), [lambda *message: messages.update({message[0]: message[3]})]
    )
    routing.match(task, boundary, all_edges)
    for i, edges in enumerate(all_edges):
        own = messages[i]["own"].numpy()
        assert ((own >= 0) & (own < 1)).all()
        ranks = np.argsort(np.argsort(own))
        # An order that told of ids would give 1.
        assert abs(np.corrcoef(ranks, edges.endpoints)[0, 1]) < 0.5


def test_every_client_trains_by_dp_sgd_with_the_given_noise(monkeypatch):
    made = watch(monkeypatch, PrivateLearner, "__init__")
    run(sigma=0.3, clip=4.0)
    assert [each["privacy"] for each in made] == [Privacy(sigma=0.3, clip=4.0)] * CLIENTS
