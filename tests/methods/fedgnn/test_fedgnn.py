"""FedGNN's own promises: what is sent, who can read it, and what noise does."""

import numpy as np
import pytest
import torch

from feddep.federation.boundary import Boundary
from feddep.methods.shared import routing
from feddep.methods.shared.cross_edges import cross_edges
from feddep.methods.shared.expansion import ExpandedSubgraph
from feddep.methods.shared.noisy_client import NoisyClient
from feddep.methods.shared.routing import downward, upward
from feddep.privacy.dpsgd import PrivateLearner
from method_tasks import CLIENTS, ROUNDS, parameters_of, task_of, train

FREE = {"noised": "update", "sigma": 0.0, "clip": 1e6}


def run(clients=CLIENTS, **parameters):
    return train("fedgnn", clients=clients, **parameters)


def test_of_one_client_without_noise_it_is_fedavg():
    ours, plain = run(1, **FREE), train("fedavg", clients=1)
    np.testing.assert_allclose(ours.histories[0].loss, plain.histories[0].loss, rtol=1e-4)
    assert {row["kind"] for row in ours.communication} == {row["kind"] for row in plain.communication}


def test_it_counts_names_once_and_embeddings_for_each_convolution_in_every_round():
    task = task_of("fedgnn")
    communication = {
        (row["client"], row["direction"], row["kind"]): (row["messages"], row["bytes"]) for row in run(**FREE).communication
    }
    width, times = task.setting.hidden_channels * 4, ROUNDS + 1
    expected = {}
    for i, edges in enumerate(cross_edges(task)):
        own, elsewhere = len(edges.endpoints), len(edges.outside)
        expected[i, "up", routing.names_of(i)] = (1, 8 * (own + elsewhere))
        for level in range(2):
            expected[i, "up", upward(i, level)] = (times, times * own * width)
            expected[i, "down", downward(i, level)] = (times, times * elsewhere * width)
    assert {
        key: counted for key, counted in communication.items() if key[2] not in ("model", "training", "validation")
    } == expected


@pytest.mark.parametrize(("refresh", "times"), [(1, ROUNDS + 1), (2, 3), (100, 1)])
def test_embeddings_are_renewed_as_often_as_asked_for(refresh, times):
    communication = run(refresh=refresh, **FREE).communication
    assert {row["messages"] for row in communication if row["kind"].startswith("embeddings")} == {times}


def test_the_third_party_matches_names_that_say_nothing_of_the_nodes(monkeypatch):
    task = task_of("fedgnn")
    all_edges, messages = cross_edges(task), {}
    cross = Boundary.send

    def recording(self, client, direction, kind, payload):
        messages[kind] = payload
        return cross(self, client, direction, kind, payload)

    monkeypatch.setattr(Boundary, "send", recording)
    boundary = Boundary(routing.name_kinds(all_edges))
    router = routing.match(task, boundary, all_edges)
    # Everybody gets the rows of exactly the nodes that the global graph joins to theirs.
    ids = [torch.from_numpy(edges.nodes[edges.endpoints]).unsqueeze(1) for edges in all_edges]
    for edges, rows in zip(all_edges, router.deliver(ids), strict=True):
        np.testing.assert_array_equal(rows.squeeze(1), edges.outside)
    for i, edges in enumerate(all_edges):
        own = messages[routing.names_of(i)]["own"].numpy()
        assert ((own >= 0) & (own < 1)).all()
        ranks = np.argsort(np.argsort(own))
        assert abs(np.corrcoef(ranks, edges.endpoints)[0, 1]) < 0.5  # an order that told of ids would give 1


def test_embeddings_are_those_of_the_global_graph_when_training_starts(monkeypatch):
    """Before the first round every client's logits are those that the initial weights give on the global graph."""
    task, seen = task_of("fedgnn"), []
    receive = ExpandedSubgraph.receive

    def watched(self, level, embeddings):
        receive(self, level, embeddings)
        if level == 1 and len(seen) < CLIENTS:
            seen.append(self.outputs(task.new_model(), 2))

    monkeypatch.setattr(ExpandedSubgraph, "receive", watched)
    run(**FREE)
    whole = task.evaluator.logits(task.new_model())
    for edges, logits in zip(cross_edges(task), seen, strict=True):
        torch.testing.assert_close(logits, whole[torch.from_numpy(edges.nodes)], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("noised", ["step", "update", "share"])
def test_noise_is_put_where_it_was_asked_for(noised, monkeypatch):
    made = []

    def watch(kind):
        start = kind.__init__

        def watched(self, *arguments, **named):
            made.append((kind, named["privacy"]))
            start(self, *arguments, **named)

        monkeypatch.setattr(kind, "__init__", watched)

    watch(PrivateLearner)
    watch(NoisyClient)
    run(noised=noised, sigma=0.3, clip=4.0)
    sizes = [len(split.train) for _, split in task_of("fedgnn").subgraphs()]
    expected = {"step": 0.3, "update": 0.3, "share": None}[noised]
    assert [kind for kind, _ in made] == [PrivateLearner if noised == "step" else NoisyClient] * CLIENTS
    assert [privacy.sigma for _, privacy in made] == [expected or 0.3 / size for size in sizes]
    assert {privacy.clip for _, privacy in made} == {4.0}


def test_the_noise_on_whole_updates_drowns_what_noise_of_a_share_leaves():
    loud, quiet, silent = (run(noised=noised, sigma=sigma) for noised, sigma in (("update", 2), ("share", 2), ("update", 0)))
    assert loud.histories[0].loss[-1] > 2 * silent.histories[0].loss[-1]
    assert quiet.histories[0].loss[-1] < 2 * silent.histories[0].loss[-1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"noised": "all"}, "noised\\n  Input should be 'step', 'update' or 'share'"),
        ({"sigma": -1.0}, "sigma\\n  Input should be greater than or equal to 0"),
        ({"clip": 0.0}, "clip\\n  Input should be greater than 0"),
        ({"refresh": 0}, "refresh\\n  Input should be greater than or equal to 1"),
    ],
)
def test_parameters_that_cannot_be_meant(wrong, message):
    with pytest.raises(ValueError, match=message):
        parameters_of("fedgnn", **wrong)
