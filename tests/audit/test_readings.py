"""What is read from updates, embeddings and prototypes, against what made them."""

import dataclasses

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from feddep import frameworks, pretraining
from feddep.audit import AuditError
from feddep.audit.embedded import as_pairs, pretrain
from feddep.audit.membership import sampled_nodes
from feddep.audit.pairs import matched
from feddep.audit.recovery import EmbeddingRecovery, FeatureRecovery
from feddep.audit.rows import RowReading
from feddep.audit.scores import auc
from feddep.audit.tap import Message, listening
from feddep.audit.updates import Alone, Solver, UpdateReading, change, convolutions
from feddep.datasets.synthetic import planted_partition
from feddep.evaluation import Evaluator, mean_adjacency
from feddep.graph import Graph
from feddep.neighbour_generation.training import NeighGenTrainer, impair_client, new_neighgen
from feddep.nn.sage import GraphSAGE
from feddep.nn.sparse import SparseMatrix
from feddep.partition import louvain
from feddep.problem import Problem
from feddep.settings import Setting
from feddep.splits import Split, random_split


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
    model = GraphSAGE(graph.num_features, 32, graph.num_classes, 2, 3, 0.0)
    model.reset_parameters(torch.Generator().manual_seed(seed))
    return model


def problem_of(clients: int = 3, dropout: float = 0.2) -> Problem:
    graph = planted_partition(180, 4, 12, 64, 6.0, 1.0, 8, 0.8, 0)
    split = random_split(graph.num_nodes, {"train": 0.6, "val": 0.2, "test": 0.2}, 0)
    setting = Setting("sgd", 0.5, 0.0, 16, 3, 2, 1, 2, 16, dropout)
    return Problem("audited", graph, split, louvain(graph, clients, 0), setting, 0)


def step(model: GraphSAGE, graph: Graph, train: np.ndarray) -> None:
    """One step on the mean loss of the training nodes, with all neighbours."""
    logits = model.full(*(SparseMatrix.from_scipy(each, "cpu") for each in (graph.features, mean_adjacency(graph))))
    cross_entropy(logits[train], torch.from_numpy(graph.labels)[train]).backward()
    torch.optim.SGD(model.parameters(), 0.5).step()


def test_the_way_back_through_nodes_alone_is_the_gradient():
    graph, split = wide()
    model = classifier(graph)
    alone = Alone(graph, split.train, convolutions(model.state_dict()))
    edgeless = pretraining.without_edges(graph)
    expected = Evaluator(edgeless).logits(model).softmax(dim=1).numpy()
    assert np.allclose(alone.shares, expected, atol=1e-5)
    step(model, edgeless, split.train)
    for convolution, gradient in zip(model.convolutions, alone.gradients, strict=True):
        assert np.allclose(convolution.bias.grad, gradient.sum(axis=0) / len(split.train), atol=1e-6)


def test_sums_over_features_are_solved_for_nodes():
    graph, _ = wide()
    of_nodes = np.random.default_rng(1).normal(size=(graph.num_nodes, 8))
    found = Solver(graph.features)(graph.features.T @ of_nodes)
    assert np.corrcoef(found.ravel(), of_nodes.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("told", [True, False])
def test_an_update_tells_its_edges_and_no_others(told):
    graph, split = wide()
    trained_on = graph if told else wide(seed=5)[0]
    trained_on = dataclasses.replace(graph, indptr=trained_on.indptr, indices=trained_on.indices)
    model = classifier(graph)
    reading = UpdateReading(0, graph, split)
    reading.hear(Message(0, "down", "model", model.state_dict()))
    step(model, trained_on, split.train)
    reading.hear(Message(0, "up", "model", model.state_dict()))
    pairs = matched(graph, np.random.default_rng(0))
    best = max(auc(column, pairs.is_edge) for column in reading.facts(pairs).T)
    assert best > 0.7 if told else best < 0.62
    assert reading.rounds == 1


def test_others_messages_are_not_taken_for_the_clients_own():
    graph, split = wide()
    reading = UpdateReading(1, graph, split)
    reading.hear(Message(0, "up", "model", classifier(graph).state_dict()))
    with pytest.raises(AuditError, match="client 1 has sent no update"):
        reading.facts(matched(graph, np.random.default_rng(0)))
    with pytest.raises(AuditError, match=r"the weights layer0\.weight; only"):
        convolutions({"layer0.weight": torch.zeros(1)})


def test_a_change_is_what_was_subtracted():
    graph, _ = wide()
    first, second = classifier(graph, 0), classifier(graph, 1)
    delta = change(convolutions(first.state_dict()), convolutions(second.state_dict()))
    half = graph.num_features
    expected = (first.convolutions[0].weight - second.convolutions[0].weight).detach().numpy()
    assert (delta[0].own == expected[:half]).all()
    assert (delta[0].neighbours == expected[half:]).all()


@pytest.mark.parametrize("told", [True, False])
def test_embeddings_tell_their_edges(told):
    graph, _ = wide()
    model = classifier(graph)
    made_of = graph if told else pretraining.without_edges(graph)
    with torch.no_grad():
        x, mean = (SparseMatrix.from_scipy(each, "cpu") for each in (made_of.features, mean_adjacency(made_of)))
        hidden = model.convolutions[0].full(x, mean).relu()
    pairs = matched(graph, np.random.default_rng(0))
    half = np.arange(0, graph.num_nodes, 2)
    reading = RowReading(0, graph, pairs, lambda message: (half, hidden.numpy()[half]) if message.kind == "z" else None, "model")
    reading.hear(Message(0, "down", "model", model.state_dict()))
    reading.hear(Message(0, "up", "z", {}))
    facts = reading.facts(pairs)
    known = np.isfinite(facts).all(axis=1)
    assert (known == (pairs.nodes % 2 == 0).all(axis=1)).all()
    assert reading.coverage == pytest.approx(known.mean())
    explained = auc(facts[known, 2], pairs.is_edge[known])
    assert explained > 0.9 if told else abs(explained - 0.5) < 0.2


def test_encoders_are_those_of_the_run():
    problem = problem_of()
    parameters = frameworks.load("feddep").Parameters(embedding=8, pretraining_epochs=2)
    encoders, made = pretrain(problem, parameters.pretraining)
    expected = pretraining.embed(problem, parameters, {})
    assert made.tensors.keys() == expected.tensors.keys()
    assert all(torch.equal(made.tensors[name], expected.tensors[name]) for name in made.tensors)
    graph, _ = problem.subgraphs()[1]
    nodes = np.array([[3, 7], [7, 2], [11, 0]])
    for joined in (True, False):
        found = as_pairs(encoders[1], graph, nodes, joined)
        for pair, z in zip(nodes, found, strict=True):
            edges = pair[None] if joined else np.empty((0, 2))
            alone = Graph.from_edges(edges, graph.features, graph.labels, graph.num_classes)
            assert np.allclose(z, pretraining.embeddings_of(encoders[1], alone, "cpu")[pair], atol=1e-5)


def test_sampled_nodes_are_those_of_the_requests():
    problem = problem_of(dropout=0.0)
    parameters = frameworks.load("fedsage_plus").Parameters(embedding=8, generator_width=8, local_epochs=3, generator_batch=9)
    how, client = parameters, problem.subgraphs()[1]
    impaired = impair_client(problem, how, 1, client)
    trainer = NeighGenTrainer(problem, how, 1, client, impaired, new_neighgen(problem, how, "client1"))
    for _ in range(how.local_epochs):
        trainer.step()
    following = sampled_nodes(problem, parameters, 1)
    x, mean = (SparseMatrix.from_scipy(each, "cpu") for each in (impaired.graph.features, mean_adjacency(impaired.graph)))
    for _ in range(2):
        requests: list[torch.Tensor] = []
        with torch.no_grad():
            z = trainer.neighgen.encoder(x, mean, torch.Generator())
        trainer.step(lambda request, to=requests: to.append(request["embeddings"]) or {})
        assert torch.allclose(requests[0], z[np.searchsorted(impaired.kept, following())], atol=1e-6)


def test_answers_of_fedsage_give_features_away():
    problem = problem_of()
    module = frameworks.load("fedsage_plus")
    parameters = module.Parameters(embedding=8, generator_width=8, local_epochs=2, federated_epochs=6, generator_batch=1)
    recovery = FeatureRecovery(1, 3, problem.subgraphs()[1][0].features.toarray(), 1.0)
    with listening(recovery.hear):
        module.run(problem, parameters)
    assert recovery.solved > 0
    assert recovery.found


def test_answers_of_feddep_without_prototypes_give_embeddings_away():
    problem = problem_of()
    module = frameworks.load("feddep_wo_proto")
    parameters = module.Parameters(
        embedding=8, pretraining_epochs=2, hidden_from="all", scale="authors", generator_optimizer="adam", generator_epochs=10
    )
    _, made = pretrain(problem, parameters.pretraining)
    real = made.of_clients("embeddings")[1]
    recovery = EmbeddingRecovery(1, 3, real)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    with listening(lambda message: found.extend(filter(None, [recovery.rows(message)]))):
        module.run(dataclasses.replace(problem, made={"pretrain": made}), parameters)
    assert found
    assert recovery.found == {int(node) for nodes, _ in found for node in nodes}
    for nodes, rows in found:
        assert np.allclose(rows, real[nodes], atol=1e-4)
