"""FedStruct and FedLap: matrices are those of the global graph, and training is SGD on all clients'
nodes together.
"""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, layer_norm

from divided import random_task, tasks
from feddep.federation.boundary import Boundary
from feddep.graph.graph import Graph
from feddep.methods.fedstruct import fedlap, fedstruct
from feddep.methods.shared.cross_edges import cross_edges, normalised_rows
from feddep.utils.errors import ConfigError
from method_tasks import observed, parameters_of

FULL = {
    "encoder": "gcn",
    "full_batch": True,
    "optimizer": "adam",
    "learning_rate": 0.01,
    "layers": 2,
}


def with_self_loops(graph: Graph) -> np.ndarray:
    """A + I."""
    return graph.adjacency.toarray().astype(float) + np.eye(graph.num_nodes)


def laplacian(graph: Graph) -> np.ndarray:
    scale = with_self_loops(graph).sum(axis=1) ** -0.5
    return np.eye(graph.num_nodes) - scale[:, None] * with_self_loops(graph) * scale


def multiply(task):
    edges = cross_edges(task)
    degrees = [task.graph.degrees[np.concatenate([own.nodes, own.outside])] for own in edges]
    rows = [normalised_rows(task, *each) for each in zip(edges, degrees, strict=True)]
    return fedlap.laplacian(rows, Boundary(fedlap.messages(edges)), edges)


@given(tasks(), st.integers(1, 6))
def test_each_client_gets_its_rows_of_the_walk(task, hops):
    walk = with_self_loops(task.graph) / with_self_loops(task.graph).sum(axis=1, keepdims=True)
    truth, edges = np.linalg.matrix_power(walk, hops), cross_edges(task)
    boundary = Boundary(fedstruct.messages(edges, task.graph.num_nodes))
    for own, rows in zip(edges, fedstruct.powers(task, boundary, edges, hops), strict=True):
        np.testing.assert_allclose(rows.numpy(), truth[own.nodes], rtol=1e-4, atol=1e-6)


@given(tasks(), st.integers(0, 2**16))
def test_clients_multiply_by_the_laplacian(task, seed):
    vector = np.random.default_rng(seed).standard_normal(task.graph.num_nodes)
    np.testing.assert_allclose(multiply(task)(vector), laplacian(task.graph) @ vector, atol=1e-6)


@given(tasks(), st.integers(1, 10))
def test_lanczos_vectors_are_orthonormal_and_diagonalise(task, steps):
    start = np.random.default_rng(0).standard_normal(task.graph.num_nodes)
    values, vectors = fedlap.lanczos(multiply(task), start, steps)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-8)
    np.testing.assert_allclose(
        vectors.T @ laplacian(task.graph) @ vectors, np.diag(values), atol=1e-5
    )
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize("steps", [12, 18])
def test_lanczos_finds_the_least_eigenvalues_first(steps):
    """Those of a matrix whose eigenvalues are known, of which one is double and found once."""
    rng = np.random.default_rng(0)
    eigenvalues = np.concatenate([[0.0, 0.0, 0.1, 0.2], rng.uniform(1.2, 2, 56)])
    basis = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    values, vectors = fedlap.lanczos(
        lambda v: basis @ (eigenvalues * (basis.T @ v)), rng.standard_normal(60), steps
    )
    assert vectors.shape == (60, steps)
    np.testing.assert_allclose(values[:3], [0, 0.1, 0.2], atol=1e-4)
    np.testing.assert_allclose(np.abs(basis[:, 2:4].T @ vectors[:, 1:3]), np.eye(2), atol=1e-2)


def sent_by(task, name, **options):
    """The first and the last weights that client 0 is sent, and each client's rows of a basis."""
    _, crossed = observed(task, name, **options)
    sent = [each.payload for each in crossed if each[:3] == (0, "down", "model")]
    bases = {
        each.client: each.payload["vectors"] for each in crossed if each.kind.startswith("basis")
    }
    return sent[0], sent[-1], [bases[i] for i in sorted(bases)]


def together(task, weights, steps, structure, energy):
    """The weights after steps of Adam on all clients' training nodes at once, in dense operations.

    ``structure`` gives a client's structure logits from its number, S or W, and the perceptron;
    ``energy`` a term of the loss.
    """
    w = {name: weight.requires_grad_() for name, weight in weights.items()}
    adam = torch.optim.Adam(
        w.values(), lr=task.setting.learning_rate, weight_decay=task.setting.weight_decay
    )

    def perceptron(rows):
        hidden = (
            layer_norm(rows, rows.shape[1:], w["norm.weight"], w["norm.bias"])
            @ w["hidden.weight"].T
            + w["hidden.bias"]
        )
        return hidden.relu() @ w["output.weight"].T + w["output.bias"]

    for _ in range(steps):
        losses, nodes = [], 0
        for i, (graph, split) in enumerate(task.subgraphs()):
            adjacency = torch.from_numpy(np.eye(graph.num_nodes) - laplacian(graph)).float()
            hidden = (
                adjacency @ torch.from_numpy(graph.features.toarray()) @ w["encoder.layer0.weight"]
                + w["encoder.layer0.bias"]
            )
            logits = (
                adjacency @ hidden.relu() @ w["encoder.layer1.weight"] + w["encoder.layer1.bias"]
            )
            logits = logits + structure(i, w["structure"], perceptron)
            labels = torch.from_numpy(graph.labels[split.train])
            losses.append(cross_entropy(logits[split.train], labels, reduction="sum"))
            nodes += len(split.train)
        adam.zero_grad()
        (sum(losses) / nodes + energy(w["structure"])).backward()
        adam.step()
    return w


@pytest.mark.parametrize(("rounds", "epochs"), [(4, 1), (2, 2)])
@pytest.mark.parametrize("name", ["fedstruct", "fedlap"])
def test_training_is_adam_on_all_clients_nodes(name, rounds, epochs):
    """The Dirichlet energy is that of S itself on the global graph."""
    task = random_task(30, 60, **FULL, rounds=rounds, local_epochs=epochs, weight_decay=0.01)
    assert task.partition is not None
    nodes = [task.partition.nodes(i) for i in range(task.partition.num_clients)]
    dense = torch.from_numpy(laplacian(task.graph)).float()
    if name == "fedstruct":
        first, last, _ = sent_by(task, name, structure_width=6, hops=3)
        walk = with_self_loops(task.graph) / with_self_loops(task.graph).sum(axis=1, keepdims=True)
        cubed = torch.from_numpy(np.linalg.matrix_power(walk, 3)).float()
        structure, energy = (
            (lambda i, s, perceptron: cubed[nodes[i]] @ perceptron(s)),
            (lambda s: 0.0),
        )
    else:
        first, last, bases = sent_by(
            task, name, structure_width=6, vectors=5, iterations=12, smoothing=2.0
        )
        basis = torch.empty(30, 5)
        basis[np.concatenate(nodes)] = torch.cat(bases)

        def structure(i, w, perceptron):
            return perceptron((bases[i] @ w).relu())

        def energy(w):
            return (
                2.0
                * torch.trace((basis @ w).T @ dense @ basis @ w)
                / torch.trace((basis @ w).T @ basis @ w)
            )

    expected = together(task, first, rounds * epochs, structure, energy)
    torch.testing.assert_close(last, expected, rtol=1e-3, atol=1e-4)


def test_a_graph_whose_square_matrix_would_be_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(fedstruct, "LARGEST", 23)
    with pytest.raises(ConfigError, match=r"24 .*datasets"):
        fedstruct.run(random_task(24, **FULL), parameters_of("fedstruct"))
