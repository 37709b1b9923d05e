"""Property inference: facts on a whole client, from what it sends once.

The attacker makes many clients of its own from one half of the graph, and learns what their messages look like; those of the
other half are attacked.  A client is a random third of the pieces that the graph's communities are cut into, so that clients
differ as real ones do; no node is in both halves, so that what is found was not learned by heart.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from feddep import pretraining, seeding
from feddep.audit import AuditError
from feddep.audit.attacks import choose, fitted
from feddep.audit.scores import auc, interval, resamplings
from feddep.audit.updates import change, convolutions
from feddep.frameworks import feddep_wo_nfdp
from feddep.graph import Graph
from feddep.partition import find_communities
from feddep.privacy.dpsgd import Privacy, PrivateLearner
from feddep.problem import Part, Problem
from feddep.progress import track
from feddep.prototypes import find_prototypes
from feddep.training import Learner, new_optimizer

CLIENTS = 60
"""Clients that are made; half of them are attacked."""

LARGEST_PIECE = 60
"""A community of more nodes is cut in node order."""

BOOTSTRAPS = 1000

PROPERTIES: dict[str, Callable[[Graph], float]] = {
    "mean degree": lambda graph: float(graph.degrees.mean()),
    "share of the largest class": lambda graph: float(np.bincount(graph.labels).max() / graph.num_nodes),
    "share of class 0": lambda graph: float((graph.labels == 0).mean()),
}
"""What is inferred: whether it is above the median of the attacker's own clients."""


def measure(problem: Problem, parameters: Any, clients: int = CLIENTS) -> list[dict[str, Any]]:
    """One row a property and kind of message.

    Args:
        problem: the run; its graph is divided anew.
        parameters: those of FedDEP w/o NFDP, which are FedDEP's and those of the noise.
        clients: number of clients made, half of which are attacked.

    Returns:
        property, leaves, clients (attacked), and AUC with its interval; 0.5 is guessing.

    Raises:
        AuditError: if the parameters are another framework's, or there are too few clients.
    """
    if not isinstance(parameters, feddep_wo_nfdp.Parameters):
        raise AuditError("properties need the parameters of FedDEP and those of its noise; use --framework feddep_wo_nfdp")
    if clients < 16:
        raise AuditError(f"{clients} clients are too few to learn from one half and attack the other; at least 16 are needed")
    made, half = shadow_clients(problem, clients)
    noise = Privacy(parameters.sigma, parameters.clip)
    messages = {
        "FedAvg: one model update and its reports": partial(of_update, problem, learner=Learner),
        "DP-SGD: one model update and its reports": partial(of_update, problem, learner=partial(PrivateLearner, privacy=noise)),
        "FedDEP: prototypes": partial(of_prototypes, problem, parameters),
    }
    rows = []
    for leaves, message in messages.items():
        facts = np.array([message(number, part) for number, part in enumerate(track(made, f"{problem.name}: {leaves}"))])
        for name, value in properties_of(made, half).items():
            rows.append({"property": name, "leaves": leaves, **infer(facts, value, half, problem.seed)})
    return rows


def shadow_clients(problem: Problem, clients: int) -> tuple[list[Part], np.ndarray]:
    """Clients, every second of which is to be attacked, and whether each is; shape (clients,)."""
    communities = find_communities(problem.graph, problem.seed)
    rng = seeding.generator(problem.seed, "audit", "shadows")
    pieces = []
    for community in range(communities.max() + 1):
        nodes = np.flatnonzero(communities == community)
        pieces += np.array_split(nodes, -(-len(nodes) // LARGEST_PIECE))
    pieces.sort(key=lambda piece: (-len(piece), int(piece[0])))
    halves = pieces[::2], pieces[1::2]
    made = []
    for number in range(clients):
        own = halves[number % 2]
        chosen = rng.permutation(len(own))[: max(1, len(own) // 3)]
        nodes = np.sort(np.concatenate([own[k] for k in chosen]))
        made.append((problem.graph.subgraph(nodes), problem.split.restrict(nodes)))
    return made, np.arange(clients) % 2 == 1


def properties_of(made: Sequence[Part], attacked: np.ndarray) -> dict[str, np.ndarray]:
    """Whether each client is above the median of the attacker's own."""
    values = {name: np.array([of(graph) for graph, _ in made]) for name, of in PROPERTIES.items()}
    return {name: value > np.median(value[~attacked]) for name, value in values.items()}


def infer(facts: np.ndarray, positive: np.ndarray, attacked: np.ndarray, seed: int) -> dict[str, Any]:
    """Learn on the attacker's own clients, judge on the others."""
    if positive[attacked].all() or not positive[attacked].any():
        raise AuditError("all attacked clients have the same property; more clients are needed")
    own = np.flatnonzero(~attacked)
    model = choose(facts[own], positive[own], np.arange(len(own)) % 3, seed)
    scores = fitted(model, facts[own], positive[own], seed)(facts[attacked])
    samples = resamplings(positive[attacked], BOOTSTRAPS, seeding.generator(seed, "audit", "properties"))
    found = interval(auc, scores, positive[attacked], samples)
    return {"clients": int(attacked.sum()), "auc": found.value, "auc_low": found.low, "auc_high": found.high, "model": model}


def of_update(problem: Problem, number: int, part: Part, learner: Any) -> np.ndarray:
    """What one round of training changes, in a few numbers, with the client's report.

    The change of the last bias and of what enters each class, the lengths of each change, and number of training nodes and loss.
    """
    graph, split = part
    model: Any = problem.new_model()
    before = convolutions(model.state_dict())
    learns = learner(graph, split.train, problem.setting, problem.seed, f"shadow{number}", problem.device)
    optimizer = new_optimizer(model, problem.setting)
    losses = [learns.epoch(model, optimizer) for _ in range(problem.setting.local_epochs)]
    delta = change(before, convolutions(model.state_dict()))
    last = delta[-1]
    lengths = [np.linalg.norm(each) for layer in delta for each in (layer.own, layer.neighbours, layer.bias)]
    ratios = [np.linalg.norm(layer.neighbours) / (np.linalg.norm(layer.own) + 1e-12) for layer in delta]
    entering = [np.linalg.norm(each, axis=0) for each in (last.own, last.neighbours)]
    return np.concatenate([last.bias, np.sort(last.bias), *entering, lengths, ratios, [learns.size, losses[-1]]])


def shape_of(prototypes: np.ndarray) -> np.ndarray:
    """What of prototypes does not depend on their order nor on the axes: lengths, distances and singular values, sorted."""
    centred = prototypes - prototypes.mean(axis=0)
    distances = np.sqrt(np.maximum(((prototypes[:, None] - prototypes[None]) ** 2).sum(axis=2), 0))
    upper = distances[np.triu_indices(len(prototypes), 1)]
    lengths = np.sort(np.linalg.norm(prototypes, axis=1))
    quantiles = np.quantile(upper, np.linspace(0, 1, 9)) if len(upper) else np.zeros(9)
    return np.concatenate([lengths, quantiles, np.linalg.svd(centred, compute_uv=False), [np.abs(prototypes).mean()]])


def of_prototypes(problem: Problem, parameters: feddep_wo_nfdp.Parameters, number: int, part: Part) -> np.ndarray:
    """The shape of a client's prototypes."""
    graph, split = part
    name = f"shadow{number}"
    z = pretraining.pretrain(graph, split.train, parameters.pretraining, problem.setting, problem.seed, name, problem.device)
    count = parameters.prototypes or graph.num_classes
    return shape_of(find_prototypes(z, count, parameters.clustering, problem.seed, name).embeddings.cpu().numpy())
