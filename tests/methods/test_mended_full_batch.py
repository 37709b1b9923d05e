"""A GCN on mended graphs, all nodes at once: against loops over nodes and the chain rule in NumPy;
whole runs; who refuses.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.graph.graph import Graph
from feddep.methods.feddep import classifier, mending
from feddep.methods.fedsage import fedsage_plus
from feddep.methods.fedsage.mended_subgraph import mended_subgraph
from method_tasks import parameters_of, task_of

RATE = 0.3
WIDTH = 6
FULL = {"full_batch": True, "encoder": "gcn", "learning_rate": RATE, "evaluation": "owners"}


def some(rng: np.random.Generator, *shape: int) -> torch.Tensor:
    return torch.from_numpy(rng.uniform(-1, 1, shape).astype(np.float32))


def normalised(graph: Graph, owner: np.ndarray) -> np.ndarray:
    """1/√((D_u + 1)(D_v + 1)) where u and v are joined or the same, with a node behind each one of
    ``owner``.
    """
    n, size = graph.num_nodes, graph.num_nodes + len(owner)
    joined = np.zeros((size, size))
    joined[:n, :n] = graph.adjacency.toarray()
    for new, old in enumerate(owner):
        joined[n + new, old] = joined[old, n + new] = 1
    with_self_loops, found = joined + np.eye(size), np.zeros((size, size))
    for u in range(size):
        for v in range(size):
            found[u, v] = with_self_loops[u, v] / np.sqrt(
                with_self_loops[u].sum() * with_self_loops[v].sum()
            )
    return found


def forward(
    model: Mapping[str, np.ndarray], a: np.ndarray, x: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, ...]:
    """What the first layer of a fused GCN gives before its ReLU, what the second reads, and the
    logits.
    """
    before = a @ x @ model["layer0.weight"] + model["layer0.bias"] + z @ model["fusions.0"]
    hidden = np.maximum(before, 0)
    return (
        before,
        hidden,
        a @ hidden @ model["layer1.weight"] + model["layer1.bias"] + z @ model["fusions.1"],
    )


def step(
    model: Mapping[str, np.ndarray],
    a: np.ndarray,
    x: np.ndarray,
    z: np.ndarray,
    labels: np.ndarray,
    nodes: np.ndarray,
) -> tuple[float, dict[str, np.ndarray]]:
    """Mean cross-entropy of ``nodes`` before a step of gradient descent, and the weights after
    it.
    """
    before, hidden, logits = forward(model, a, x, z)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    of_logits = np.zeros_like(logits)
    for v in nodes:
        of_logits[v] = (shares[v] - np.eye(logits.shape[1])[labels[v]]) / len(nodes)
    of_before = (a.T @ of_logits @ model["layer1.weight"].T) * (before > 0)
    gradients = {
        **{
            "layer0.weight": (a @ x).T @ of_before,
            "layer0.bias": of_before.sum(axis=0),
            "fusions.0": z.T @ of_before,
        },
        **{
            "layer1.weight": (a @ hidden).T @ of_logits,
            "layer1.bias": of_logits.sum(axis=0),
            "fusions.1": z.T @ of_logits,
        },
    }
    loss = -np.log([shares[v, labels[v]] for v in nodes]).mean()
    return loss, {name: weight - RATE * gradients[name] for name, weight in model.items()}


def arrays(model: Any) -> dict[str, np.ndarray]:
    return {name: tensor.double().numpy().copy() for name, tensor in model.state_dict().items()}


def boundary_of(model: Any) -> Boundary:
    return Boundary({"model": schema_of(model), **REPORTS})


def check(
    client: Client, graph: Graph, a: np.ndarray, x: np.ndarray, z: np.ndarray | None = None
) -> None:
    """A client's step of training and its tests are those of NumPy."""
    own, split = arrays(client.model), client.split
    none = {f"fusions.{k}": np.zeros((1, len(own[f"layer{k}.bias"]))) for k in (0, 1)}
    z, first = (np.zeros((len(x), 1)), {**none, **own}) if z is None else (z, own)
    loss, after = step(first, a, x, z, graph.labels, split.train)
    classes = forward(first, a, x, z)[2][split.test].argmax(axis=1)
    assert client.evaluate(report=False)[1] == (
        int((classes == graph.labels[split.test]).sum()),
        len(split.test),
    )
    assert client.train() == pytest.approx(loss, rel=1e-4)
    for name, array in arrays(client.model).items():
        np.testing.assert_allclose(array, after[name], rtol=1e-3, atol=1e-5)
        assert np.abs(array - own[name]).max() > 1e-4, name


@pytest.mark.parametrize("seed", range(3))
def test_a_generated_neighbour_is_a_node_of_the_normalised_adjacency(seed: int):
    task, rng = task_of("fedsage_plus", **FULL, dropout=0.0), np.random.default_rng(seed)
    graph, split = task.subgraphs()[0]
    owner = np.sort(rng.integers(0, graph.num_nodes, rng.integers(0, 40)))
    features = some(rng, len(owner), graph.num_features).half()
    mended = mended_subgraph(task, graph, torch.from_numpy(owner), features)
    client = fedsage_plus.new_client(task, 0, mended, split, boundary_of(task.new_model()))
    x = np.concatenate([graph.features.toarray(), features.double().numpy()])
    check(client, graph, normalised(graph, owner), x)


@pytest.mark.parametrize("seed", range(3))
def test_mended_embeddings_are_added_behind_the_normalised_sum(seed: int):
    task = task_of("feddep", **FULL, dropout=0.0)
    parameters = parameters_of("feddep", embedding=WIDTH)
    graph, split = task.subgraphs()[0]
    z = some(np.random.default_rng(seed), graph.num_nodes, WIDTH)
    boundary = boundary_of(mending.new_classifier(task, parameters))
    client = classifier.new_client(task, parameters, 0, (graph, split), z, boundary)
    check(
        client,
        graph,
        normalised(graph, np.zeros(0, int)),
        graph.features.toarray(),
        z.double().numpy(),
    )
