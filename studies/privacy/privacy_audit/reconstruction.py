"""Feature reconstruction: how much of a cluster's mean features an adversary reconstructs from its
prototype.

A linear map of a mean is the mean of the mapped rows, so the adversary learns a map from embeddings
to features by ridge regression on nodes of other clients, whose features it knows, and applies it
to the attacked client's prototypes.  It knows:

* ``shadow encoders``: the other clients' embeddings by their own encoders, whose coordinates are
  unrelated to the attacked client's.  This is what other clients have in FedDEP.
* ``the client's encoder``: that encoder, by which it embeds the other clients' nodes.
* ``common encoder``: all clients share one encoder (the parameter ``encoder: federated``).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from torch import Tensor

from feddep.graph.graph import Graph
from feddep.methods.feddep import FedDEPParameters
from feddep.methods.feddep.pretraining import embed, embeddings_of, without_edges
from feddep.methods.feddep.prototypes import Prototypes, find_prototypes
from feddep.training.task import Task
from feddep.utils.progress import track
from studies.privacy.privacy_audit.embedding_features import train_encoders

COUNTS = (3, 5, 10, 15, 20, 50, 100, 200)
"""Numbers C of prototypes; in the last step each node is its own prototype."""

PENALTIES = (1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e6)
"""Candidates for the regularizer of the ridge regression."""

KNOWLEDGE = ("shadow encoders", "the client's encoder", "common encoder")


def measure(task: Task, parameters: FedDEPParameters) -> list[dict[str, Any]]:
    """Attack every client's prototypes.

    Returns:
        Rows of knowledge, prototypes (C), every_node (whether each node is a prototype), client,
        nodes (n), and the scores of :func:`evaluate`.
    """
    graphs = [graph for graph, _ in task.subgraphs()]
    encoders, pretrained = train_encoders(task, parameters)
    own = pretrained.of_clients("embeddings")
    common = embed(task, parameters.replace(encoder="federated")).of_clients("embeddings")
    rows = []
    for i in track(range(len(graphs)), f"{task.name}: reconstruction"):
        others = [j for j in range(len(graphs)) if j != i]
        seen = [graphs[j] if parameters.depth else without_edges(graphs[j]) for j in others]
        features = [graphs[j].features.toarray() for j in others]
        guess = np.concatenate(features).mean(axis=0)
        counts = [*(count for count in COUNTS if count < graphs[i].num_nodes), graphs[i].num_nodes]
        of_own, of_common = (
            [prototypes_of(z, count, parameters, task.seed, i) for count in counts]
            for z in (own[i], common[i])
        )
        attacks = (
            ([own[j] for j in others], of_own),
            ([embeddings_of(encoders[i], graph, task.device) for graph in seen], of_own),
            ([common[j] for j in others], of_common),
        )
        for knowledge, (embeddings, prototypes) in zip(KNOWLEDGE, attacks, strict=True):
            decode = fit([z.cpu().numpy() for z in embeddings], features)
            for count, found in zip(counts, prototypes, strict=True):
                of = {
                    "knowledge": knowledge,
                    "prototypes": count,
                    "every_node": count == graphs[i].num_nodes,
                }
                scores = evaluate(graphs[i], found, decode(found.embeddings.cpu().numpy()), guess)
                rows.append({**of, "client": i, "nodes": graphs[i].num_nodes, **scores})
    return rows


def fit(
    embeddings: Sequence[np.ndarray], features: Sequence[np.ndarray]
) -> Callable[[np.ndarray], np.ndarray]:
    """The map from embeddings to features, as a function; its regularizer is selected by leaving
    one client out at a time.

    ``embeddings`` are those of each of the clients trained on, at least two, shape (n, d_z);
    ``features`` likewise, (n, F).
    """
    clients = np.arange(len(embeddings))
    with threadpool_limits(1):
        x = [np.column_stack([z.astype(np.float64), np.ones(len(z))]) for z in embeddings]
        xx = np.array([each.T @ each for each in x])
        xy = np.array([each.T @ y for each, y in zip(x, features, strict=True)])
        yy = [float((y.astype(np.float64) ** 2).sum()) for y in features]

        def solve(some: np.ndarray, regularizer: float) -> np.ndarray:
            weights = np.full(xx.shape[1], regularizer)
            weights[-1] = 0  # the constant is not penalised
            return np.linalg.solve(xx[some].sum(axis=0) + np.diag(weights), xy[some].sum(axis=0))

        def error(regularizer: float) -> float:
            solutions = [solve(clients != k, regularizer) for k in clients]
            return sum(
                yy[k] - 2 * float((w * xy[k]).sum()) + float((w * (xx[k] @ w)).sum())
                for k, w in enumerate(solutions)
            )

        solution = solve(clients, min(PENALTIES, key=error))
    return lambda z: z.astype(np.float64) @ solution[:-1] + solution[-1]


def prototypes_of(
    z: Tensor, count: int, parameters: FedDEPParameters, seed: int, client: int
) -> Prototypes:
    """What a client sends, as in a run; without clustering where each node is its own cluster."""
    if count < len(z):
        return find_prototypes(z, count, parameters.clustering, seed, f"client{client}")
    return Prototypes(z, z.new_ones(len(z)).cumsum(0).long() - 1)


def evaluate(
    graph: Graph, prototypes: Prototypes, reconstructed: np.ndarray, guess: np.ndarray
) -> dict[str, float]:
    """Scores of a reconstruction, shape (C, F), of features from each prototype of a client;
    repeated ones count once.

    ``guess`` is the mean features of the nodes trained on, shape (F,).

    Returns:
        error, squared error of the clusters' mean features as a share of the guess's; match, share
        of the prototypes for which the client's node most similar to the reconstruction is a member
        of the cluster; chance, the same for a random node.
    """
    cluster = prototypes.cluster.cpu().numpy()
    members = np.bincount(cluster)
    x = graph.features.toarray()
    means = np.zeros((len(members), x.shape[1]))
    np.add.at(means, cluster, x)
    means /= members[:, None]
    reconstructed = reconstructed[: len(members)]
    error = ((reconstructed - means) ** 2).sum() / max(((guess - means) ** 2).sum(), 1e-12)
    norms = np.maximum(np.linalg.norm(x - guess, axis=1), 1e-12)
    # By cosine, of the difference from the guess.
    nearest = (((reconstructed - guess) @ (x - guess).T) / norms).argmax(axis=1)
    match = cluster[nearest] == np.arange(len(members))
    return {
        "error": float(error),
        "match": float(match.mean()),
        "chance": float((members / len(x)).mean()),
    }


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean, minimum and maximum over clients, of each knowledge and number of prototypes, None
    where each node is one.
    """
    found = []
    for knowledge in KNOWLEDGE:
        of_knowledge = [row for row in rows if row["knowledge"] == knowledge]
        for count in [
            *sorted({row["prototypes"] for row in of_knowledge if not row["every_node"]}),
            None,
        ]:
            some = [
                row
                for row in of_knowledge
                if (row["every_node"] if count is None else row["prototypes"] == count)
            ]
            of: dict[str, Any] = {"knowledge": knowledge, "prototypes": count, "clients": len(some)}
            for score in ("error", "match", "chance"):
                values = [row[score] for row in some]
                of |= {
                    score: float(np.mean(values)),
                    f"{score}_low": min(values),
                    f"{score}_high": max(values),
                }
            found.append(of)
    return found
