"""FedNLD: cross-fitting leaves out what it says; similar nodes and answers are those of a slow reference."""

import dataclasses
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from divided import random_task, tasks
from feddep.federation.boundary import Boundary
from feddep.graph.split import Split
from feddep.methods.fednld import CrossFittingParameters, cross_fitting, fednld, neighbours
from feddep.methods.fednld.fednld import SoftmaxRegression
from feddep.methods.shared.answering import answer_kinds
from feddep.methods.shared.cross_edges import cross_edges
from feddep.training.evaluator import Evaluator
from feddep.utils.errors import ConfigError
from method_tasks import parameters_of, run_on, steps_of, task_of


@given(st.integers(0, 30), st.integers(0, 20), st.integers(1, 5), st.integers(0, 5))
def test_folds_are_of_equal_size_and_of_training_nodes_only(trained, others, folds, seed):
    train = np.random.default_rng(seed).permutation(trained + others)[:trained]
    fold = cross_fitting.divided(train, trained + others, folds, seed, 0)
    assert set(np.flatnonzero(fold != cross_fitting.NO_FOLD)) == set(train)
    sizes = np.bincount(fold[train], minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    assert len(sizes) == folds


def test_a_classifier_does_not_depend_on_the_labels_of_the_fold_that_it_predicts():
    task = task_of("fednld")
    before = steps_of("fednld", task, parameters_of("fednld", folds=2))["pretrain"]
    labels = task.graph.labels.copy()
    chosen = task.partition.nodes(0)[before.of_clients("fold")[0].numpy() == 1]
    labels[chosen] = (labels[chosen] + 1) % task.graph.num_classes
    changed = dataclasses.replace(task, graph=dataclasses.replace(task.graph, labels=labels))
    after = steps_of("fednld", changed, parameters_of("fednld", folds=2))["pretrain"]
    same, other = ({name for name in before.tensors if name.startswith(f"classifier{k}.")} for k in (1, 0))
    assert same
    assert all(torch.equal(before.tensors[name], after.tensors[name]) for name in same)
    assert not all(torch.equal(before.tensors[name], after.tensors[name]) for name in other)


def test_predictions_come_from_the_classifier_of_the_fold_and_else_from_all():
    task = task_of("fednld")
    step = steps_of("fednld", task, parameters_of("fednld", folds=3))["pretrain"]
    (graph, _), fold, found = task.subgraphs()[1], step.of_clients("fold")[1].numpy(), step.of_clients("predictions")[1]
    logits = []
    for weights in cross_fitting.classifiers(step, 3):
        model = task.new_model()
        model.load_state_dict(weights)
        logits.append(Evaluator(graph).logits(model))
    for v in range(graph.num_nodes):
        of = [logits[fold[v]][v].softmax(0)] if fold[v] >= 0 else [each[v].softmax(0) for each in logits]
        product = torch.stack(of).prod(dim=0) ** (1 / len(of))
        torch.testing.assert_close(found[v].exp(), (product / product.sum()).clamp_min(1e-4), rtol=1e-4, atol=1e-6)


def test_too_few_training_nodes_are_a_clear_error():
    task = random_task()
    one = dataclasses.replace(task, split=Split(task.split.train[:1], task.split.val, task.split.test))
    with pytest.raises(ConfigError):
        cross_fitting.cross_fit(one, CrossFittingParameters())


@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 100))
def test_the_mean_is_over_the_most_similar_nodes(nodes, count, seed):
    rng = np.random.default_rng(seed)
    x = rng.random((nodes, 8)) * (rng.random((nodes, 8)) < 0.6)
    p = rng.dirichlet(np.ones(3), nodes)
    found = neighbours.feature_knn_mean(sp.csr_matrix(x), p, count)
    idf = 1 + np.log((1 + nodes) / (1 + (x > 0).sum(axis=0)))
    for v in range(nodes):
        cosines = []
        for u in range(nodes):
            a, b = x[v] * idf, x[u] * idf
            lengths = np.linalg.norm(a) * np.linalg.norm(b)
            cosines.append(a @ b / lengths if u != v and lengths else 0.0)
        order = sorted(range(nodes), key=lambda u: -cosines[u])[:count]
        total = sum(cosines[u] for u in order)
        expected = sum(cosines[u] * p[u] for u in order) / total if total else np.zeros(3)
        np.testing.assert_allclose(found[v], expected, atol=1e-6)


@given(st.integers(1, 4), st.integers(1, 6))
def test_quantised_distributions_are_all_that_multiples_make(parts, classes):
    found = np.rint(neighbours.quantised(parts, classes) * parts).astype(int).tolist()
    assert sorted(map(tuple, found)) == [each for each in product(range(parts + 1), repeat=classes) if sum(each) == parts]
    assert np.array_equal(neighbours.quantised(1, 5), np.eye(5))


@given(tasks(), st.integers(1, 3))
def test_true_answers_are_the_mean_of_the_missing_neighbours_quantised_distributions(task, parts):
    edges, classes = cross_edges(task), task.graph.num_classes
    log_p = torch.randn(task.graph.num_nodes, classes, generator=torch.Generator().manual_seed(0)).log_softmax(1)
    boundary = Boundary(answer_kinds(edges, classes))
    found = neighbours.Answers(task, boundary, edges, None, parts).ask([log_p[each.nodes] for each in edges])
    multiples = np.array([each for each in product(range(parts + 1), repeat=classes) if sum(each) == parts]) / parts
    distances = ((log_p.exp().numpy()[:, None] - multiples) ** 2).sum(axis=2)
    owner = task.partition.client
    for own, rows in zip(edges, found, strict=True):
        for v, row in zip(own.nodes, rows, strict=True):
            missing = [u for u in range(task.graph.num_nodes) if task.graph.adjacency[v, u] and owner[u] != owner[v]]
            expected = multiples[distances[missing].argmin(axis=1)].sum(axis=0) / max(len(missing), 1)
            np.testing.assert_allclose(row, expected, atol=1e-6)


def test_everybody_who_asks_for_a_node_gets_the_same_answer():
    task = random_task(nodes=30, edges=120, clients=4)
    edges, classes = cross_edges(task), task.graph.num_classes
    heard: dict[int, set[tuple[float, ...]]] = {}

    def listen(client, direction, kind, payload):
        if kind.startswith("answers for"):
            for node, row in zip(edges[client].outside, payload["answers"].tolist(), strict=True):
                heard.setdefault(int(node), set()).add(tuple(row))

    even = [torch.zeros(len(each.nodes), classes) for each in edges]
    neighbours.Answers(task, Boundary(answer_kinds(edges, classes), [listen]), edges, 0.5).ask(even)
    assert len(heard) > 10
    assert all(len(answers) == 1 for answers in heard.values())
    assert len(set.union(*heard.values())) > 1


def test_each_round_answers_what_the_regression_before_it_predicts(monkeypatch):
    asked, budgets = [], []
    ask = neighbours.Answers.ask

    def listen(owners, predictions):
        asked.append(predictions)
        budgets.append(owners.epsilon)
        return ask(owners, predictions)

    monkeypatch.setattr(neighbours.Answers, "ask", listen)
    task = task_of("fednld_answers")
    result = run_on(task, "fednld_answers", label_rounds=3, epsilon=6.0, feature_knn=0)
    assert budgets == [2.0, 2.0, 2.0]
    first, second, third = asked
    step = steps_of("fednld_answers", task, parameters_of("fednld_answers", feature_knn=0))["pretrain"]
    assert all(torch.equal(a, b) for a, b in zip(first, step.of_clients("predictions"), strict=True))
    for before, after in ((first, second), (second, third)):
        assert not all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
        assert all(torch.allclose(each.exp().sum(dim=1), torch.ones(len(each))) for each in after)
    classes = task.graph.num_classes
    assert result.weights()["layer0.weight"].shape == (7 * classes, classes)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4), st.integers(0, 100))
def test_weights_of_nodes_without_answers_and_with_are_apart(nodes, known, answers, seed):
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((nodes, known + answers))
    inputs[rng.random(nodes) < 0.5, known:] = 0
    found = fednld.separated(inputs, known)
    without, with_answers = rng.standard_normal((known, 3)), rng.standard_normal((known + answers + 1, 3))
    for row, x in zip(found @ np.vstack([without, with_answers]), inputs, strict=True):
        expected = np.append(x, 1) @ with_answers if x[known:].any() else x[:known] @ without
        np.testing.assert_allclose(row, expected, atol=1e-12)
    assert fednld.separated(inputs, None) is inputs


@pytest.mark.parametrize("known", [None, 4])
def test_the_regression_starts_as_the_prediction(known):
    inputs = np.random.default_rng(0).standard_normal((30, 9)).astype(np.float32)
    inputs[::2, 4:] = 0
    rows = torch.from_numpy(fednld.separated(inputs, known).astype(np.float32))
    regression = SoftmaxRegression(rows.shape[1], 3).start(known or 0)
    torch.testing.assert_close(regression.full(rows, None), torch.from_numpy(inputs[:, :3]))


@pytest.mark.parametrize(
    ("name", "options", "inputs"),
    [
        ("fednld", {"feature_knn": 0}, 4),
        ("fednld_counts", {}, 4 * 4),
        ("fednld_answers", {}, 4 * 4),
        ("fednld_answers", {"separate": True}, 2 * 4 + 4 * 4 + 1),
    ],
)
def test_inputs_of_the_regression(name, options, inputs):
    assert run_on(task_of(name), name, **options).weights()["layer0.weight"].shape == (inputs, 4)
