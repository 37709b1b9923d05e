"""Answers: FedAvg to the bit where there are none; Bayes' rule, label propagation and what is sent
against slow references.
"""

import dataclasses
import math
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, logsumexp, softmax

from divided import random_task, tasks
from feddep.federation.boundary import Boundary
from feddep.graph.split import Split
from feddep.methods.answers import (
    PropagationParameters,
    asking,
    bayes,
    class_counts,
    propagation,
    recorded_fedavg,
)
from feddep.methods.method import StepResult
from feddep.methods.shared.cross_edges import cross_edges
from feddep.privacy.randomised_response import keep_probability, kernel
from feddep.training.evaluation import total
from feddep.training.evaluator import Evaluator
from feddep.utils.errors import ConfigError
from method_tasks import (
    Message,
    observed,
    on_graph,
    parameters_of,
    run_on,
    same_runs,
    task_of,
    train,
    watch,
    without_cross_edges,
)

RULES = ["answers_bayes", "answers_pooled", "answers_propagation"]
CURVES = ["loss", "validation", "test"]


@pytest.mark.parametrize("name", ["answers_bayes", "answers_pooled"])
def test_without_edges_to_others_bayes_is_fedavg_to_the_bit(name: str):
    task = without_cross_edges(name)
    assert same_runs(run_on(task, name), run_on(task, "fedavg"))


def test_without_weight_of_neighbours_propagation_is_fedavg_to_the_bit():
    changed, plain = train("answers_propagation", alpha=0.0).history, train("fedavg").history
    for moment in ("before", "after"):
        found, expected = getattr(changed, moment), getattr(plain, moment)
        assert [each[1:] for each in found] == [each[1:] for each in expected]


@pytest.mark.parametrize("name", RULES)
def test_the_global_graph_and_the_choice_of_a_round_are_those_of_fedavg(name: str):
    changed, plain = train(name), train("fedavg")
    assert all(changed.curve[curve] == plain.curve[curve] for curve in CURVES)
    assert on_graph(changed) == on_graph(plain)
    weights = changed.weights()
    assert all(torch.equal(tensor, weights[key]) for key, tensor in plain.weights().items())
    assert changed.curve["local_before"] != plain.curve["local_before"]


@given(st.integers(2, 3), st.integers(0, 3), st.floats(0.1, 8), st.integers(0, 1000))
def test_the_posterior_is_that_of_an_enumeration_of_the_missing_neighbours_classes(
    classes, missing, epsilon, seed
):
    rng = np.random.default_rng(seed)
    p, told = rng.dirichlet(np.ones(classes)), rng.integers(classes, size=missing)
    compatibility, noise = rng.dirichlet(np.ones(classes), classes), kernel(classes, epsilon)
    joint = np.zeros(classes)
    for y in range(classes):
        for each in product(range(classes), repeat=missing):
            joint[y] += p[y] * math.prod(
                compatibility[y, c] * noise[c, a] for c, a in zip(each, told, strict=True)
            )
    links = sp.csr_matrix(np.ones((1, missing), dtype=np.float32))
    scores = np.log(p) + bayes.evidence(links, told, compatibility @ noise)[0]
    np.testing.assert_allclose(softmax(scores), joint / joint.sum(), rtol=1e-6)


@given(st.integers(2, 4), st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 1000))
def test_pooled_answers_are_a_geometric_mean_of_their_likelihoods(classes, missing, seed):
    rng = np.random.default_rng(seed)
    told = rng.integers(classes, size=sum(missing))
    likelihood = rng.dirichlet(np.ones(classes), classes)
    links = np.zeros((len(missing), len(told)), dtype=np.float32)
    expected = np.ones((len(missing), classes))
    start = 0
    for v, count in enumerate(missing):
        links[v, start : start + count] = 1
        for y in range(classes):
            expected[v, y] = math.prod(likelihood[y, a] for a in told[start : start + count]) ** (
                1 / max(count, 1)
            )
        start += count
    found = bayes.pooled_evidence(sp.csr_matrix(links), told, likelihood)
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-6)


def test_neighbour_counts_are_of_training_nodes_and_their_neighbours_in_the_subgraph():
    rng = np.random.default_rng(0)
    for graph, split in task_of("answers_bayes").subgraphs():
        known = rng.integers(4, size=graph.num_nodes)
        expected = np.zeros((4, 4))
        for v, u in product(split.train, range(graph.num_nodes)):
            expected[graph.labels[v], known[u]] += graph.adjacency[v, u]
        counts = bayes.neighbour_counts((graph, split), known, 4)
        assert np.array_equal(counts, expected)
        found = bayes.compatibility(counts, bayes.prior(0.6, 4), 5.0)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        np.testing.assert_allclose(
            found * (counts.sum(axis=1) + 5)[:, None], counts + 5 * bayes.prior(0.6, 4)
        )


def test_answers_come_from_the_round_that_is_best_on_validation_nodes():
    logits = torch.randn(4, 5, 3)
    step = StepResult(
        {"client0.before": logits, "history.validation": torch.tensor([0.2, 0.9, 0.9, 0.1])}
    )
    (found,) = recorded_fedavg.at_best_round(step)
    assert np.array_equal(found, logits[1].numpy())


def test_propagation_starts_from_labels_and_predictions_and_counts_all_neighbours(monkeypatch):
    task, calls = task_of("answers_propagation"), watch(monkeypatch, propagation, "propagated")
    run_on(task, "answers_propagation", epsilon=None)
    for (graph, split), own, call in zip(task.subgraphs(), cross_edges(task), calls, strict=False):
        adjacency, told, degrees, start, kept, _ = call.values()
        assert (adjacency != graph.adjacency).nnz == 0
        assert np.array_equal(degrees, np.diff(task.graph.indptr)[own.nodes])
        assert np.array_equal(told.sum(axis=1), np.diff(own.links.indptr))
        assert np.array_equal(kept, split.train)
        assert np.array_equal(start[kept], np.eye(4)[graph.labels[kept]])
        np.testing.assert_allclose(start.sum(axis=1), 1)


@given(tasks(), st.floats(0, 0.95))
def test_propagation_ends_where_a_linear_system_is_solved(task, alpha):
    rng = np.random.default_rng(0)
    parameters = PropagationParameters(alpha=alpha, iterations=1000)
    for (graph, split), own in zip(task.subgraphs(), cross_edges(task), strict=True):
        n, a = graph.num_nodes, graph.adjacency.toarray()
        start = rng.dirichlet(np.ones(3), n)
        told = own.links @ rng.dirichlet(np.ones(3), len(own.outside))
        degrees = a.sum(axis=1) + own.links.toarray().sum(axis=1)
        found = propagation.propagated(
            graph.adjacency, told, degrees, start, split.train, parameters
        )
        matrix, right = np.eye(n), start.copy()
        for v in set(range(n)) - set(split.train):
            if degrees[v]:
                matrix[v] -= alpha * a[v] / degrees[v]
                right[v] = (1 - alpha) * start[v] + alpha * told[v] / degrees[v]
        np.testing.assert_allclose(found, np.linalg.solve(matrix, right), atol=1e-6)


def test_an_owner_knows_the_labels_that_it_trains_on_and_predicts_all_others():
    task = task_of("answers_bayes")
    for graph, split in task.subgraphs():
        logits = np.random.default_rng(0).standard_normal((graph.num_nodes, graph.num_classes))
        before = logits.copy()
        found = asking.known_classes((graph, split), logits, True)
        others = np.concatenate([split.val, split.test])
        assert np.array_equal(found[split.train], graph.labels[split.train])
        assert np.array_equal(found[others], logits[others].argmax(axis=1))
        assert np.array_equal(
            asking.known_classes((graph, split), logits, False), logits.argmax(axis=1)
        )
        assert np.array_equal(logits, before)


def test_answers_are_drawn_once_a_node_by_the_law_of_randomised_response():
    task, epsilon, counts = random_task(nodes=900, edges=9000, clients=3), 1.0, np.zeros(3)
    edges = cross_edges(task)
    for seed in range(5):
        known = [np.full(len(own.nodes), 1) for own in edges]
        again = dataclasses.replace(task, seed=seed)
        heard: dict[int, set[int]] = {}
        found = asking.ask(again, Boundary(asking.answer_kinds(edges, 3)), edges, known, epsilon)
        for own, told in zip(edges, found, strict=True):
            for u, answer in zip(own.outside, told, strict=True):
                heard.setdefault(int(u), set()).add(int(answer))
        assert all(len(answers) == 1 for answers in heard.values())
        counts += np.bincount([answers.pop() for answers in heard.values()], minlength=3)
    keep = math.e / (math.e + 2)
    np.testing.assert_allclose(
        counts / counts.sum(),
        [(1 - keep) / 2, keep, (1 - keep) / 2],
        atol=4 * 0.5 / math.sqrt(counts.sum()),
    )


def told(crossed: list[Message], direction: str) -> dict[int, np.ndarray]:
    """The classes that each client answers, or is answered."""
    return {
        each.client: each.payload[asking.ANSWERS].numpy().argmax(axis=1)
        for each in crossed
        if (each.direction, each.kind) == (direction, asking.ANSWERS)
    }


@pytest.mark.parametrize("labels", [False, True])
def test_local_accuracy_at_the_best_round_is_that_of_its_weights_and_of_what_was_heard(
    labels: bool,
):
    task = task_of("answers_bayes")
    options = {"likelihood": "plain", "labels": labels, "epsilon": None}
    result, crossed = observed(task, "answers_bayes", **options)
    heard = told(crossed, "down")
    (judged,), model = result.history.judged, task.new_model()
    model.load_state_dict(result.weights())
    logits = [Evaluator(graph).logits(model).numpy() for graph, _ in task.subgraphs()]
    known = np.zeros(task.graph.num_nodes, dtype=np.int64)
    for own, part, each in zip(cross_edges(task), task.subgraphs(), logits, strict=True):
        known[own.nodes] = asking.known_classes(part, each, labels)
    right = 0
    for i, (own, (graph, split)) in enumerate(
        zip(cross_edges(task), task.subgraphs(), strict=True)
    ):
        assert np.array_equal(heard[i], known[own.outside])
        scores = log_softmax(logits[i].astype(float), axis=1)
        for v in split.test:
            for u in own.links[v].indices:
                a = np.eye(4)[heard[i][u]]
                scores[v] += np.log(0.6 * a + 0.4 / 4)
            scores[v] -= logsumexp(scores[v])
            right += int(scores[v].argmax() == graph.labels[v])
    assert total(judged.local(judged.rounds, "before")) == (right, len(task.split.test))


def test_the_second_fedavg_reads_how_often_each_class_was_answered(monkeypatch):
    task = task_of("answers_counts")
    results = {"pretrain": recorded_fedavg.train(task)}
    calls = watch(monkeypatch, class_counts.fedavg, "train_on")
    result = class_counts.run(task, parameters_of("answers_counts", epsilon=None), results)
    known = np.zeros(task.graph.num_nodes, dtype=np.int64)
    for own, logits in zip(
        cross_edges(task), recorded_fedavg.at_best_round(results["pretrain"]), strict=True
    ):
        known[own.nodes] = logits.argmax(axis=1)
    ((wider, parts),) = (call.values() for call in calls)
    width = task.graph.num_features
    assert wider.graph.features[:, width:].nnz == 0
    assert (wider.graph.features[:, :width] != task.graph.features).nnz == 0
    for (graph, split), (plain, same), own in zip(
        parts, task.subgraphs(), cross_edges(task), strict=True
    ):
        expected = np.zeros((graph.num_nodes, 4))
        for v, u in zip(*own.links.nonzero(), strict=True):
            expected[v, known[own.outside[u]]] += 1
        assert np.array_equal(graph.features[:, width:].toarray(), expected)
        assert (graph.features[:, :width] != plain.features).nnz == 0
        assert np.array_equal(split.train, same.train)
    assert {"answers", "model"} <= {row["kind"] for row in result.communication}


def test_labels_that_are_read_are_drawn_once_by_randomised_response_and_others_stay(monkeypatch):
    nodes = np.arange(9000)
    task, given = random_task(nodes=9000, edges=9000, clients=3), []
    task = dataclasses.replace(task, split=Split(nodes[:3000], nodes[3000:6000], nodes[6000:]))
    monkeypatch.setattr(recorded_fedavg, "train", given.append)
    for _ in range(2):
        recorded_fedavg.train_on_private_labels(
            task, parameters_of("answers_private_labels", label_epsilon=1.0)
        )
    first, second = (each.graph.labels for each in given)
    assert np.array_equal(first, second)
    kept = first == task.graph.labels
    assert kept[task.split.test].all()
    for read in (task.split.train, task.split.val):
        assert kept[read].mean() == pytest.approx(
            math.e / (math.e + 2), abs=4 * 0.5 / math.sqrt(len(read))
        )


@pytest.mark.parametrize("label_epsilon", [0.5, 4.0])
def test_answers_hold_the_private_labels_and_not_the_true_ones(label_epsilon: float):
    task = task_of("answers_private_labels")
    options = {"label_epsilon": label_epsilon, "labels": True, "epsilon": None}
    sent = told(observed(task, "answers_private_labels", **options)[1], "up")
    private = recorded_fedavg.private_labels(task, label_epsilon).graph.labels
    answered, true = [], []
    for client, own in enumerate(cross_edges(task)):
        nodes = own.nodes[own.endpoints]
        trained = np.isin(nodes, task.split.train)
        assert np.array_equal(sent[client][trained], private[nodes[trained]])
        answered += sent[client][trained].tolist()
        true += task.graph.labels[nodes[trained]].tolist()
    kept = np.equal(answered, true).mean()
    expected = keep_probability(label_epsilon, task.graph.num_classes)
    assert kept == pytest.approx(expected, abs=4 * 0.5 / math.sqrt(len(true)))


def test_bayes_on_labels_that_no_noise_changes_is_that_of_the_other_method():
    ours = train("answers_private_labels", label_epsilon=1000.0, labels=True)
    theirs = train("answers_bayes", labels=True)
    assert same_runs(ours, theirs)


def test_without_weight_of_answers_it_is_fedavg_on_the_private_labels():
    ours = train("answers_private_labels", label_epsilon=1.0, homophily=0.0)
    (judged,) = ours.history.judged
    task = task_of("answers_private_labels")
    step = recorded_fedavg.train_on_private_labels(
        task, parameters_of("answers_private_labels", label_epsilon=1.0)
    )
    right = 0
    for (graph, split), logits in zip(
        task.subgraphs(), recorded_fedavg.at_best_round(step), strict=True
    ):
        right += int((logits.argmax(axis=1) == graph.labels)[split.test].sum())
    assert total(judged.local(judged.rounds, "before")) == (right, len(task.split.test))


@pytest.mark.parametrize("name", [*RULES, "answers_private_labels"])
def test_owners_judge_what_the_rule_makes_of_their_predictions(name: str):
    owners = run_on(task_of(name, evaluation="owners"), name).history
    history = run_on(task_of(name), name).history
    plain = run_on(task_of(name, evaluation="owners"), "fedavg").history
    sizes = [(len(split.val), len(split.test)) for _, split in task_of(name).subgraphs()]
    for when in ("before", "after"):
        rounds = getattr(owners, when)
        assert [each[1:] for each in rounds] == [each[1:] for each in getattr(history, when)]
        assert [(val, test) for (_, val), (_, test) in zip(*rounds[0][:2], strict=True)] == sizes
        assert [each.validation for each in rounds] != [
            each.validation for each in getattr(plain, when)
        ]


def test_a_method_without_owners_scores_is_refused_where_the_setting_asks_for_them(monkeypatch):
    original = recorded_fedavg.changed
    monkeypatch.setattr(
        bayes,
        "changed",
        lambda task, *rest: original(dataclasses.replace(task, evaluation="global"), *rest),
    )
    with pytest.raises(ConfigError, match="answers_bayes"):
        run_on(task_of("answers_bayes", evaluation="owners"), "answers_bayes")
