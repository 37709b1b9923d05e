"""Property inference: facts about a whole client from one message.

The adversary makes shadow clients from one half of the graph, and learns what their messages look
like; clients made from the other half are attacked.  A client is a random third of the pieces that
its half's communities are cut into, so that clients differ as real ones do; no node is in both
halves.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from feddep.graph.graph import Graph
from feddep.graph.partition import find_communities
from feddep.methods.feddep import WithoutNFDPParameters
from feddep.methods.feddep.pretraining import embeddings_of, setting_of, train_gnn
from feddep.methods.feddep.prototypes import find_prototypes
from feddep.privacy.dpsgd import Privacy, PrivateLearner
from feddep.training.learner import Learner
from feddep.training.task import ClientData, Task
from feddep.utils import seeding
from feddep.utils.progress import track
from studies.privacy.privacy_audit.attack_models import fit_model, select_model
from studies.privacy.privacy_audit.attack_statistics import auc, bootstrap_samples, interval
from studies.privacy.privacy_audit.updates import convolutions, train_locally, weight_change

CLIENTS = 60
"""Clients that are made; half of them are attacked."""

LARGEST_PIECE = 60
"""A community of more nodes is cut in node order."""

BOOTSTRAPS = 1000

PROPERTIES: dict[str, Callable[[Graph], float]] = {
    "mean degree": lambda graph: float(graph.degrees.mean()),
    "share of the largest class": lambda graph: float(
        np.bincount(graph.labels).max() / graph.num_nodes
    ),
    "share of class 0": lambda graph: float((graph.labels == 0).mean()),
}
"""What is inferred: whether it is above the median of the shadow clients."""


def measure(task: Task, parameters: WithoutNFDPParameters) -> list[dict[str, Any]]:
    """Infer every property from every kind of message, of clients that the run's graph is divided
    among anew.

    Returns:
        Rows of property, leaves, clients (attacked), AUC with its interval (0.5 is guessing), and
        model.
    """
    parts, attacked = divide(task)
    private = partial(PrivateLearner, privacy=Privacy(parameters.sigma, parameters.clip))
    messages = {
        "FedAvg: one model update and its reports": partial(update_features, task, Learner),
        "DP-SGD: one model update and its reports": partial(update_features, task, private),
        "FedDEP: prototypes": partial(prototype_features, task, parameters),
    }
    values = {name: np.array([of(graph) for graph, _ in parts]) for name, of in PROPERTIES.items()}
    rows = []
    for leaves, of_message in messages.items():
        features = np.array(
            [of_message(i, part) for i, part in enumerate(track(parts, f"{task.name}: {leaves}"))]
        )
        for name, value in values.items():
            positive = value > np.median(value[~attacked])
            rows.append(
                {
                    "property": name,
                    "leaves": leaves,
                    **infer(features, positive, attacked, task.seed),
                }
            )
    return rows


def divide(task: Task) -> tuple[list[ClientData], np.ndarray]:
    """Clients made of the graph's communities, and whether each is attacked, shape (CLIENTS,):
    every second one.
    """
    communities = find_communities(task.graph, task.seed)
    rng = seeding.generator(task.seed, "audit", "shadows")
    pieces = []
    for community in range(communities.max() + 1):
        nodes = np.flatnonzero(communities == community)
        pieces += np.array_split(nodes, -(-len(nodes) // LARGEST_PIECE))
    pieces.sort(key=lambda piece: (-len(piece), int(piece[0])))
    parts = []
    for i in range(CLIENTS):
        half = pieces[i % 2 :: 2]
        chosen = rng.permutation(len(half))[: max(1, len(half) // 3)]
        nodes = np.sort(np.concatenate([half[k] for k in chosen]))
        parts.append((task.graph.subgraph(nodes), task.split.restrict(nodes)))
    return parts, np.arange(CLIENTS) % 2 == 1


def infer(
    features: np.ndarray, positive: np.ndarray, attacked: np.ndarray, seed: int
) -> dict[str, Any]:
    """Train on the shadow clients, evaluate on the attacked ones.

    ``features`` are those of each client's message, shape (clients, k); ``positive`` is the
    property, shape (clients,).
    """
    shadow = features[~attacked], positive[~attacked]
    model = select_model(*shadow, np.arange(len(shadow[0])) % 3, seed)
    scores = fit_model(model, *shadow, seed)(features[attacked])
    samples = bootstrap_samples(
        positive[attacked], BOOTSTRAPS, seeding.generator(seed, "audit", "properties")
    )
    found = interval(auc, scores, positive[attacked], samples)
    return {"clients": int(attacked.sum()), **found.columns("auc"), "model": model}


def update_features(task: Task, new_learner: Any, number: int, part: ClientData) -> np.ndarray:
    """One round's model update in a few numbers, with the client's report.

    The change of the last bias and of the weights of each class, the norms of each change, and
    number of training nodes and loss.
    """
    graph, split = part
    model: Any = task.new_model()
    before = convolutions(model.state_dict())
    learner = new_learner(
        graph, split.train, task.setting, task.seed, f"shadow{number}", task.device
    )
    loss = train_locally(model, learner, task.setting, task.setting.local_epochs)
    delta = weight_change(before, convolutions(model.state_dict()))
    last = delta[-1]
    norms = [np.linalg.norm(each) for layer in delta for each in layer]
    ratios = [
        np.linalg.norm(layer.neighbours) / (np.linalg.norm(layer.own) + 1e-12) for layer in delta
    ]
    of_classes = [np.linalg.norm(each, axis=0) for each in (last.own, last.neighbours)]
    return np.concatenate(
        [last.bias, np.sort(last.bias), *of_classes, norms, ratios, [learner.size, loss]]
    )


def prototype_features(
    task: Task, parameters: WithoutNFDPParameters, number: int, part: ClientData
) -> np.ndarray:
    """The :func:`invariants` of a client's prototypes."""
    name, count = f"shadow{number}", parameters.prototypes or task.graph.num_classes
    gnn = train_gnn(
        replace(task, setting=setting_of(parameters, task.setting)), part, parameters, name
    )
    z = embeddings_of(gnn, part[0], task.device)
    return invariants(
        find_prototypes(z, count, parameters.clustering, task.seed, name).embeddings.cpu().numpy()
    )


def invariants(prototypes: np.ndarray) -> np.ndarray:
    """What depends on neither order nor rotation (norms, distances, singular values), and the mean
    size of an entry.
    """
    centred = prototypes - prototypes.mean(axis=0)
    distances = np.sqrt(np.maximum(((prototypes[:, None] - prototypes[None]) ** 2).sum(axis=2), 0))
    upper = distances[np.triu_indices(len(prototypes), 1)]
    norms = np.sort(np.linalg.norm(prototypes, axis=1))
    quantiles = np.quantile(upper, np.linspace(0, 1, 9)) if len(upper) else np.zeros(9)
    return np.concatenate(
        [norms, quantiles, np.linalg.svd(centred, compute_uv=False), [np.abs(prototypes).mean()]]
    )
