"""FedGNN's own promises: what is sent, who can read it, and what noise does."""

import numpy as np
import pytest
import torch
from test_frameworks import CLIENTS, ROUNDS, problem_of, train

from feddep.baselines.border import borders
from feddep.baselines.expansion import ExpandedSubgraph
from feddep.baselines.noisy_client import NoisyClient
from feddep.baselines.routing import downward, upward
from feddep.federation.boundary import Boundary
from feddep.frameworks import fedgnn
from feddep.privacy.dpsgd import PrivateLearner

FREE = {"noised": "update", "sigma": 0.0, "clip": 1e9}


def run(clients=CLIENTS, **parameters):
    return fedgnn.run(problem_of("fedgnn", clients=clients), fedgnn.Parameters(**parameters))


def test_of_one_client_without_noise_it_is_fedavg():
    ours, plain = run(1, **FREE), train("fedavg", clients=1)
    np.testing.assert_allclose(ours.histories[0].loss, plain.histories[0].loss, rtol=1e-4)
    assert {row["kind"] for row in ours.ledger} == {row["kind"] for row in plain.ledger}


def test_it_counts_names_once_and_embeddings_for_each_convolution_in_every_round():
    problem = problem_of("fedgnn")
    ledger = {(row["client"], row["direction"], row["kind"]): (row["messages"], row["bytes"]) for row in run(**FREE).ledger}
    width, times = problem.setting.hidden * 4, ROUNDS + 1
    expected = {}
    for i, border in enumerate(borders(problem)):
        own, elsewhere = len(border.boundary), len(border.outside)
        expected[i, "up", fedgnn.names_of(i)] = (1, 8 * (own + elsewhere))
        for level in range(2):
            expected[i, "up", upward(i, level)] = (times, times * own * width)
            expected[i, "down", downward(i, level)] = (times, times * elsewhere * width)
    assert {key: counted for key, counted in ledger.items() if key[2] not in ("model", "training", "validation")} == expected


@pytest.mark.parametrize(("refresh", "times"), [(1, ROUNDS + 1), (2, 3), (100, 1)])
def test_embeddings_are_renewed_as_often_as_asked_for(refresh, times):
    ledger = run(refresh=refresh, **FREE).ledger
    assert {row["messages"] for row in ledger if row["kind"].startswith("embeddings")} == {times}


def test_the_third_party_matches_names_that_say_nothing_of_the_nodes(monkeypatch):
    problem = problem_of("fedgnn")
    outer, messages = borders(problem), {}
    cross = Boundary.cross

    def recording(self, client, direction, kind, payload):
        messages[kind] = payload
        return cross(self, client, direction, kind, payload)

    monkeypatch.setattr(Boundary, "cross", recording)
    boundary = Boundary(fedgnn.name_kinds(outer))
    router = fedgnn.match(problem, boundary, outer)
    # Everybody gets the rows of exactly the nodes that the global graph joins to theirs.
    ids = [torch.from_numpy(border.nodes[border.boundary]).unsqueeze(1) for border in outer]
    for border, rows in zip(outer, router.deliver(ids), strict=True):
        np.testing.assert_array_equal(rows.squeeze(1), border.outside)
    for i, border in enumerate(outer):
        own = messages[fedgnn.names_of(i)]["own"].numpy()
        assert ((own >= 0) & (own < 1)).all()
        ranks = np.argsort(np.argsort(own))
        assert abs(np.corrcoef(ranks, border.boundary)[0, 1]) < 0.5  # an order that told of ids would give 1


def test_embeddings_are_those_of_the_global_graph_when_training_starts(monkeypatch):
    """Before the first round every client's logits are those that the initial weights give on the global graph."""
    problem, seen = problem_of("fedgnn"), []
    receive = ExpandedSubgraph.receive

    def watched(self, level, embeddings):
        receive(self, level, embeddings)
        if level == 1 and len(seen) < CLIENTS:
            seen.append(self.outputs(problem.new_model(), 2))

    monkeypatch.setattr(ExpandedSubgraph, "receive", watched)
    run(**FREE)
    whole = problem.evaluator.logits(problem.new_model())
    for border, logits in zip(borders(problem), seen, strict=True):
        torch.testing.assert_close(logits, whole[torch.from_numpy(border.nodes)], rtol=1e-4, atol=1e-5)


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
    sizes = [len(split.train) for _, split in problem_of("fedgnn").subgraphs()]
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
        ({"noised": "all"}, "noised is 'all'; it must be step, update or share"),
        ({"sigma": -1.0}, "sigma is -1.0"),
        ({"clip": 0.0}, "clip is 0.0"),
        ({"refresh": 0}, "refresh is 0; it must be at least 1"),
    ],
)
def test_parameters_that_cannot_be_meant(wrong, message):
    with pytest.raises(ValueError, match=message):
        fedgnn.Parameters(**wrong)
