"""What is read from updates, embeddings and prototypes, against what made them."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from small import task_of
from torch.nn.functional import cross_entropy

from feddep.graph.graph import Graph
from feddep.graph.split import Split, random_split
from feddep.methods import registry
from feddep.methods.feddep import FedDEPParameters, pretraining
from feddep.methods.fedsage import NeighGenParameters
from feddep.methods.fedsage.neighgen_training import NeighGenTrainer, new_neighgen
from feddep.methods.shared.impairing_clients import impair_client
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix
from feddep.training.evaluator import Evaluator, mean_adjacency
from studies.privacy_audit.attack_statistics import auc
from studies.privacy_audit.embedding_features import EmbeddingFeatures, embed_pairs, train_encoders
from studies.privacy_audit.gradient_inversion import EmbeddingInversion, FeatureInversion
from studies.privacy_audit.pairs import matched_pairs
from studies.privacy_audit.updates import IsolatedPass, UpdateFeatures, convolutions


def wide(seed: int = 0, nodes: int = 120) -> tuple[Graph, Split]:
    """More features than nodes, and edges that have nothing to do with features."""
    rng = np.random.default_rng(seed)
    graph = Graph.from_edges(
        rng.integers(0, nodes, (150, 2)),
        rng.random((nodes, 300)) * (rng.random((nodes, 300)) < 0.1),
        rng.integers(0, 3, nodes),
        3,
    )
    return graph, random_split(nodes, {"train": 0.8, "val": 0.1, "test": 0.1}, 0)


def classifier(graph: Graph, seed: int = 0) -> GraphSAGE:
    model = GraphSAGE(graph.num_features, 32, graph.num_classes, 2, 0.0)
    model.reset_parameters(torch.Generator().manual_seed(seed))
    return model


def step(model: GraphSAGE, graph: Graph, train: np.ndarray) -> None:
    """One step on the mean loss of the training nodes, with all neighbours."""
    logits = model.full(*(SparseMatrix.from_scipy(each, "cpu") for each in (graph.features, mean_adjacency(graph))))
    cross_entropy(logits[train], torch.from_numpy(graph.labels)[train]).backward()
    torch.optim.SGD(model.parameters(), 0.5).step()


def test_the_way_back_through_nodes_alone_is_the_gradient():
    graph, split = wide()
    model = classifier(graph)
    isolated = IsolatedPass(graph, split.train, convolutions(model.state_dict()))
    edgeless = pretraining.without_edges(graph)
    expected = Evaluator(edgeless).logits(model).softmax(dim=1).numpy()
    assert np.allclose(isolated.probabilities, expected, atol=1e-5)
    step(model, edgeless, split.train)
    for convolution, gradient in zip(model.convolutions, isolated.gradients, strict=True):
        assert np.allclose(convolution.bias.grad, gradient.sum(axis=0) / len(split.train), atol=1e-6)


@pytest.mark.parametrize("told", [True, False])
def test_an_update_tells_its_edges_and_no_others(told):
    graph, split = wide()
    trained_on = graph if told else wide(seed=5)[0]
    trained_on = dataclasses.replace(graph, indptr=trained_on.indptr, indices=trained_on.indices)
    model = classifier(graph)
    observer = UpdateFeatures(graph, split)
    observer.receive("down", "model", model.state_dict())
    step(model, trained_on, split.train)
    observer.receive("up", "model", model.state_dict())
    pairs = matched_pairs(graph, np.random.default_rng(0))
    best = max(auc(column, pairs.is_edge) for column in observer.features(pairs).T)
    assert best > 0.7 if told else best < 0.62
    assert observer.rounds == 1


@pytest.mark.parametrize("told", [True, False])
def test_embeddings_tell_their_edges(told):
    graph, _ = wide()
    model = classifier(graph)
    made_of = graph if told else pretraining.without_edges(graph)
    with torch.no_grad():
        x, mean = (SparseMatrix.from_scipy(each, "cpu") for each in (made_of.features, mean_adjacency(made_of)))
        hidden = model.convolutions[0].full(x, mean).relu()
    pairs = matched_pairs(graph, np.random.default_rng(0))
    half = np.arange(0, graph.num_nodes, 2)
    observer = EmbeddingFeatures(
        graph, pairs, lambda direction, kind, payload: (half, hidden.numpy()[half]) if kind == "z" else None, True
    )
    observer.receive("down", "model", model.state_dict())
    observer.receive("up", "z", {})
    features = observer.features(pairs)
    known = np.isfinite(features).all(axis=1)
    assert (known == (pairs.nodes % 2 == 0).all(axis=1)).all()
    explained = auc(features[known, 2], pairs.is_edge[known])
    assert explained > 0.9 if told else abs(explained - 0.5) < 0.2


def test_encoders_are_those_of_the_run():
    task = task_of()
    parameters = FedDEPParameters(embedding=8, pretraining_epochs=2)
    encoders, made = train_encoders(task, parameters)
    expected = pretraining.embed(task, parameters, {})
    assert made.tensors.keys() == expected.tensors.keys()
    assert all(torch.equal(made.tensors[name], expected.tensors[name]) for name in made.tensors)
    graph, _ = task.subgraphs()[1]
    nodes = np.array([[3, 7], [7, 2], [11, 0]])
    for joined in (True, False):
        found = embed_pairs(encoders[1], graph, nodes, joined)
        for pair, z in zip(nodes, found, strict=True):
            edges = pair[None] if joined else np.empty((0, 2))
            alone = Graph.from_edges(edges, graph.features, graph.labels, graph.num_classes)
            assert np.allclose(z, pretraining.embeddings_of(encoders[1], alone, "cpu")[pair], atol=1e-5)


def test_requests_are_of_the_nodes_that_are_shown():
    drawn: list[tuple[int, np.ndarray]] = []
    task = dataclasses.replace(task_of(dropout=0.0), inspectors=(lambda what, shown: drawn.append(shown),))
    parameters = NeighGenParameters(embedding=8, generator_width=8, generator_local_epochs=3, generator_batch=9)
    impaired = impair_client(task, parameters, 1, task.subgraphs()[1])
    trainer = NeighGenTrainer(task, parameters, 1, task.subgraphs()[1], impaired, new_neighgen(task, parameters, "client1"))
    trainer.step()
    x, mean = (SparseMatrix.from_scipy(each, "cpu") for each in (impaired.graph.features, mean_adjacency(impaired.graph)))
    for _ in range(2):
        requests: list[torch.Tensor] = []
        with torch.no_grad():
            z = trainer.neighgen.encode(x, mean, torch.Generator())
        trainer.step(lambda request, to=requests: to.append(request["embeddings"]) or {})
        client, nodes = drawn[-1]
        assert client == 1
        assert torch.allclose(requests[0], z[np.searchsorted(impaired.kept, nodes)], atol=1e-6)


def test_answers_of_fedsage_give_features_away():
    task = task_of()
    method = registry.find("fedsage_plus")
    parameters = method.parameters(
        embedding=8, generator_width=8, generator_local_epochs=2, generator_federated_epochs=6, generator_batch=1
    )
    inversion = FeatureInversion(3, task.subgraphs()[1][0].features.toarray(), 1.0)
    watched = dataclasses.replace(task, observers=(lambda client, *message: client == 1 and inversion.receive(*message),))
    method.run(watched, parameters)
    assert inversion.found


def test_answers_of_feddep_without_prototypes_give_embeddings_away():
    task = task_of()
    method = registry.find("feddep_wo_proto")
    parameters = method.parameters(
        embedding=8, pretraining_epochs=2, hidden_from="all", scale="authors", generator_optimizer="adam", generator_epochs=10
    )
    _, made = train_encoders(task, parameters)
    real = made.of_clients("embeddings")[1]
    inversion = EmbeddingInversion(3, real)
    found: list[tuple[np.ndarray, np.ndarray]] = []

    def observe(client: int, *message: Any) -> None:
        if client == 1 and (recovered := inversion.extract(*message)) is not None:
            found.append(recovered)

    method.run(dataclasses.replace(task, step_results={"pretrain": made}, observers=(observe,)), parameters)
    assert found
    assert inversion.found == {int(node) for nodes, _ in found for node in nodes}
    for nodes, rows in found:
        assert np.allclose(rows, real[nodes], atol=1e-4)
