"""What is read from updates, embeddings, gradients and prototypes, against what made them."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from small import DGEN, NEIGHGEN, task_of
from torch.nn.functional import cross_entropy

from feddep.graph.graph import Graph
from feddep.methods import registry
from feddep.methods.feddep import FedDEPParameters, pretraining
from feddep.methods.feddep.prototypes import Prototypes
from feddep.methods.fedsage import NeighGenParameters
from feddep.methods.fedsage.neighgen_training import NeighGenTrainer, new_neighgen
from feddep.methods.shared.impairing_clients import impair_client
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import graph_matrices
from feddep.training.evaluator import Evaluator
from studies.privacy.privacy_audit import properties, reconstruction
from studies.privacy.privacy_audit.attack_statistics import auc
from studies.privacy.privacy_audit.embedding_features import (
    EmbeddingFeatures,
    embed_pairs,
    train_encoders,
)
from studies.privacy.privacy_audit.gradient_inversion import EmbeddingInversion, FeatureInversion
from studies.privacy.privacy_audit.pairs import matched_pairs
from studies.privacy.privacy_audit.updates import IsolatedPass, UpdateFeatures, convolutions

TRAIN = np.arange(96)


def wide(seed: int = 0) -> Graph:
    """More features than nodes, and edges that have nothing to do with features."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, 120, (150, 2))
    features = rng.random((120, 300)) * (rng.random((120, 300)) < 0.1)
    return Graph.from_edges(edges, features, rng.integers(0, 3, 120), 3)


def classifier(graph: Graph) -> GraphSAGE:
    model = GraphSAGE(graph.num_features, 32, graph.num_classes, 2, 0.0)
    model.reset_parameters(torch.Generator().manual_seed(0))
    return model


def step(model: GraphSAGE, graph: Graph) -> None:
    """One step on the mean loss of the training nodes, with all neighbours."""
    logits = model.full(*graph_matrices(graph, "cpu"))
    cross_entropy(logits[TRAIN], torch.from_numpy(graph.labels)[TRAIN]).backward()
    torch.optim.SGD(model.parameters(), 0.5).step()


def test_the_way_back_through_nodes_alone_is_the_gradient():
    edgeless = pretraining.without_edges(wide())
    model = classifier(edgeless)
    isolated = IsolatedPass(wide(), TRAIN, convolutions(model.state_dict()))
    expected = Evaluator(edgeless).logits(model).softmax(dim=1).numpy()
    assert np.allclose(isolated.probabilities, expected, atol=1e-5)
    step(model, edgeless)
    for convolution, gradient in zip(model.convolutions, isolated.gradients, strict=True):
        assert np.allclose(convolution.bias.grad, gradient.sum(axis=0) / len(TRAIN), atol=1e-6)


@pytest.mark.parametrize("told", [True, False])
def test_updates_and_embeddings_tell_their_edges_and_no_others(told):
    graph, other = wide(), wide(seed=5)
    made_of = (
        graph if told else dataclasses.replace(graph, indptr=other.indptr, indices=other.indices)
    )
    model = classifier(graph)
    with torch.no_grad():
        hidden = model.convolutions[0].full(*graph_matrices(made_of, "cpu")).relu().numpy()
    pairs, half = matched_pairs(graph, np.random.default_rng(0)), np.arange(0, 120, 2)
    updates = UpdateFeatures(graph, dataclasses.replace(task_of().split, train=TRAIN))
    embeddings = EmbeddingFeatures(
        graph, pairs, lambda way, kind, payload: (half, hidden[half]) if kind == "z" else None, True
    )
    for observer in (updates, embeddings):
        observer.receive("down", "model", model.state_dict())
    embeddings.receive("up", "z", {})
    step(model, made_of)
    updates.receive("up", "model", model.state_dict())
    best = max(auc(column, pairs.is_edge) for column in updates.features(pairs).T)
    assert best > 0.7 if told else best < 0.62
    features = embeddings.features(pairs)
    known = np.isfinite(features).all(axis=1)
    assert (known == (pairs.nodes % 2 == 0).all(axis=1)).all()
    explained = auc(features[known, 2], pairs.is_edge[known])
    assert explained > 0.9 if told else abs(explained - 0.5) < 0.2


def test_encoders_are_those_of_the_run():
    task, parameters = task_of(), FedDEPParameters(embedding=8, pretraining_epochs=2)
    encoders, made = train_encoders(task, parameters)
    torch.testing.assert_close(
        made.tensors, pretraining.embed(task, parameters).tensors, rtol=0, atol=0
    )
    graph, _ = task.subgraphs()[1]
    nodes = np.array([[3, 7], [7, 2], [11, 0]])
    for joined in (True, False):
        for pair, z in zip(nodes, embed_pairs(encoders[1], graph, nodes, joined), strict=True):
            alone = Graph.from_edges(
                pair[None][: int(joined)], graph.features, graph.labels, graph.num_classes
            )
            assert np.allclose(
                z, pretraining.embeddings_of(encoders[1], alone, "cpu")[pair], atol=1e-5
            )


def test_requests_are_of_the_nodes_that_are_shown():
    drawn: list[tuple[int, np.ndarray]] = []
    task = dataclasses.replace(
        task_of(dropout=0.0), inspectors=(lambda what, shown: drawn.append(shown),)
    )
    parameters = NeighGenParameters(
        embedding=8, generator_width=8, generator_local_epochs=3, generator_batch=9
    )
    impaired = impair_client(task, parameters, 1, task.subgraphs()[1])
    trainer = NeighGenTrainer(
        task,
        parameters,
        1,
        task.subgraphs()[1],
        impaired,
        new_neighgen(task, parameters, "client1"),
    )
    trainer.step()
    requests: list[torch.Tensor] = []
    with torch.no_grad():
        z = trainer.neighgen.encode(*graph_matrices(impaired.graph, "cpu"), torch.Generator())
    trainer.step(lambda request: requests.append(request["embeddings"]) or {})
    client, nodes = drawn[-1]
    assert client == 1
    assert torch.allclose(requests[0], z[np.searchsorted(impaired.kept, nodes)], atol=1e-6)


def watch(name: str, receive: Any, results: Any = None, **options: Any) -> None:
    """Run a method, and show the messages of client 1."""
    task, method = task_of(), registry.find(name)
    observers = (lambda client, *message: client == 1 and receive(*message),)
    method.run(
        dataclasses.replace(task, step_results=results or {}, observers=observers),
        method.parameters(**options),
    )


def test_answers_of_fedsage_give_features_away():
    inversion = FeatureInversion(task_of().subgraphs()[1][0].features.toarray(), 1.0)
    epochs = {"generator_local_epochs": 2, "generator_federated_epochs": 6}
    watch("fedsage_plus", inversion.receive, **{**NEIGHGEN, **epochs, "generator_batch": 1})
    assert inversion.found


def test_answers_of_feddep_without_prototypes_give_embeddings_away():
    options: Any = {
        **DGEN,
        "scale": "authors",
        "generator_optimizer": "adam",
        "generator_epochs": 10,
    }
    _, made = train_encoders(task_of(), registry.find("feddep_wo_proto").parameters(**options))
    real = made.of_clients("embeddings")[1]
    inversion = EmbeddingInversion(real)
    found: list[Any] = []
    watch(
        "feddep_wo_proto",
        lambda *message: found.append(inversion.extract(*message)),
        {"pretrain": made},
        **options,
    )
    recovered = [each for each in found if each is not None]
    assert inversion.found == {int(node) for nodes, _ in recovered for node in nodes} != set()
    for nodes, rows in recovered:
        assert np.allclose(rows, real[nodes], atol=1e-4)


def test_a_perfect_reconstruction_and_a_guess():
    graph, _ = task_of().subgraphs()[0]
    x = graph.features.toarray()
    cluster = np.arange(graph.num_nodes) % 5
    means, guess = np.array([x[cluster == c].mean(axis=0) for c in range(5)]), x.mean(axis=0)
    prototypes = Prototypes(torch.zeros(5, 2), torch.from_numpy(cluster))
    perfect = reconstruction.evaluate(graph, prototypes, means, guess)
    assert (perfect["error"], perfect["chance"]) == (
        pytest.approx(0, abs=1e-10),
        pytest.approx(1 / 5),
    )
    assert reconstruction.evaluate(graph, prototypes, np.tile(guess, (5, 1)), guess)[
        "error"
    ] == pytest.approx(1)
    each = Prototypes(torch.zeros(len(x), 2), torch.arange(len(x)))
    assert reconstruction.evaluate(graph, each, x, guess)["match"] > 0.95


def test_the_map_is_that_of_a_ridge_regression_and_its_penalty_that_of_other_clients():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 30, 4)), rng.normal(size=(3, 30, 7))
    found = [
        Ridge(p).fit(np.concatenate(np.delete(x, k, 0)), np.concatenate(np.delete(y, k, 0)))
        for p in reconstruction.PENALTIES
        for k in range(3)
    ]
    errors = [((model.predict(x[k % 3]) - y[k % 3]) ** 2).sum() for k, model in enumerate(found)]
    best = reconstruction.PENALTIES[int(np.reshape(errors, (-1, 3)).sum(axis=1).argmin())]
    expected = Ridge(best).fit(np.concatenate(x), np.concatenate(y)).predict(x[0])
    assert np.allclose(reconstruction.fit(list(x), list(y))(x[0]), expected)


def test_more_prototypes_say_more_to_who_has_the_encoder(monkeypatch):
    monkeypatch.setattr(reconstruction, "COUNTS", (3, 10))
    rows = reconstruction.measure(task_of(), FedDEPParameters(embedding=16, pretraining_epochs=3))
    assert len(rows) == 3 * 3 * 3
    summary = reconstruction.summary(rows)
    assert [row["prototypes"] for row in summary[:3]] == [3, 10, None]
    (known,) = (
        row
        for row in summary
        if (row["prototypes"], row["knowledge"]) == (None, "the client's encoder")
    )
    assert known["error"] < 1
    assert known["match"] > 1.5 * known["chance"]
    assert all(row["error_low"] <= row["error"] <= row["error_high"] for row in summary)


def test_a_property_that_shows_is_found_and_one_that_does_not_is_not():
    rng = np.random.default_rng(0)
    positive, attacked = rng.random(120) < 0.5, np.arange(120) % 2 == 1
    noise = rng.normal(size=(120, 3))
    assert (
        properties.infer(np.column_stack([noise, 9 * positive]), positive, attacked, 0)["auc"]
        > 0.99
    )
    found = properties.infer(noise, positive, attacked, 0)
    assert found["auc_low"] < 0.5 < found["auc_high"]
