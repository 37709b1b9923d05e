"""Features from prototypes: how much of a cluster's mean node an attacker reconstructs, as the number C of prototypes grows.

A prototype is the mean embedding of a cluster, and the attacker wants the mean features of the cluster's nodes.  It learns a
linear map from embeddings to features (ridge regression) on the nodes of other clients, whose features it knows, and applies it
to the prototypes of the client that it attacks.  A linear map of a mean is the mean of what it maps, so single nodes serve to
learn from.  How it comes by embeddings to learn from is the attack's knowledge:

* ``shadow encoders``: the other clients' embeddings by their own encoders, whose coordinates have nothing to do with the
  client's: what others have in FedDEP.
* ``the client's encoder``: it has that encoder, and embeds the other clients' nodes with it.
* ``common encoder``: all have one encoder (the parameter ``encoder: common``), and nothing has to be stolen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from torch import Tensor

from feddep.audit import AuditError
from feddep.audit.attacks import LEAST_CLIENTS
from feddep.audit.embedded import pretrain
from feddep.frameworks import feddep
from feddep.graph import Graph
from feddep.pretraining import embed, embeddings_of, without_edges
from feddep.problem import Problem
from feddep.progress import track
from feddep.prototypes import Prototypes, find_prototypes

COUNTS = (3, 5, 10, 15, 20, 50, 100, 200)
"""Numbers C of prototypes; in the end each node is its own prototype."""

PENALTIES = (1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e6)
"""What the ridge regression may choose among."""

KNOWLEDGE = ("shadow encoders", "the client's encoder", "common encoder")


def measure(problem: Problem, parameters: Any) -> list[dict[str, Any]]:
    """One row an attack's knowledge, number of prototypes and client that is attacked.

    Returns:
        knowledge, prototypes (C), client, nodes (n); error, squared error of the reconstructed mean features as a share of that
        of guessing the mean features of the shadow clients' nodes for every cluster; match, share of the prototypes for which
        the node of the client that is most like the reconstruction is a member of the cluster; chance, the same for a node drawn
        at random.

    Raises:
        AuditError: if there are fewer than three clients, or the framework has no prototypes.
    """
    if not isinstance(parameters, feddep.Parameters):
        raise AuditError("features are reconstructed from prototypes; use --framework feddep")
    graphs = [graph for graph, _ in problem.subgraphs()]
    if len(graphs) < LEAST_CLIENTS:
        raise AuditError(f"there are {len(graphs)} clients; at least {LEAST_CLIENTS} are needed (key clients)")
    encoders, made = pretrain(problem, replace(parameters, encoder="own").pretraining)
    own = made.of_clients("embeddings")
    common = embed(problem, replace(parameters, encoder="common"), {}).of_clients("embeddings")
    rows = []
    for i in track(range(len(graphs)), f"{problem.name}: reconstruction"):
        others = [j for j in range(len(graphs)) if j != i]
        seen = [graphs[j] if parameters.depth else without_edges(graphs[j]) for j in others]
        by_own = [embeddings_of(encoders[i], graph, problem.device) for graph in seen]
        learned_from = {KNOWLEDGE[0]: [own[j] for j in others], KNOWLEDGE[1]: by_own, KNOWLEDGE[2]: [common[j] for j in others]}
        shadow = [graphs[j].features.toarray() for j in others]
        guess = np.concatenate(shadow).mean(axis=0)
        counts = [*(count for count in COUNTS if count < graphs[i].num_nodes), graphs[i].num_nodes]
        of_own, of_common = (
            [prototypes_of(z, count, parameters, problem.seed, i) for count in counts] for z in (own[i], common[i])
        )
        for knowledge, embeddings in learned_from.items():
            decoder = fit([each.cpu().numpy() for each in embeddings], shadow)
            for count, found in zip(counts, of_common if knowledge == KNOWLEDGE[2] else of_own, strict=True):
                judged = judge(graphs[i], found, decoder(found.embeddings.cpu().numpy()), guess)
                of = {"knowledge": knowledge, "prototypes": count, "every_node": count == graphs[i].num_nodes}
                rows.append({**of, "client": i, "nodes": graphs[i].num_nodes, **judged})
    return rows


@dataclass(frozen=True, eq=False)
class Sums:
    """All that a ridge regression needs of some nodes, with a column of ones behind the embeddings."""

    xx: np.ndarray
    xy: np.ndarray
    yy: float

    @classmethod
    def of(cls, embeddings: np.ndarray, features: np.ndarray) -> "Sums":
        """Of embeddings, shape (n, d_z), and features, shape (n, F)."""
        x = np.column_stack([embeddings.astype(np.float64), np.ones(len(embeddings))])
        return cls(x.T @ x, x.T @ features, float((features.astype(np.float64) ** 2).sum()))

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.xx + other.xx, self.xy + other.xy, self.yy + other.yy)

    def solve(self, penalty: float) -> np.ndarray:
        """The map, shape (d_z + 1, F); its last row, the constant, is not penalised."""
        weights = np.full(len(self.xx), penalty)
        weights[-1] = 0
        return np.linalg.solve(self.xx + np.diag(weights), self.xy)

    def error(self, solution: np.ndarray) -> float:
        """Sum of squared errors of a map on these nodes."""
        return self.yy - 2 * float((solution * self.xy).sum()) + float((solution * (self.xx @ solution)).sum())


def fit(embeddings: Sequence[np.ndarray], features: Sequence[np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """The map from embeddings to features, as a function; its penalty is chosen by leaving one client out at a time.

    Args:
        embeddings: of each of the clients that are learned from, at least two, shape (n, d_z).
        features: likewise, shape (n, F).
    """
    with threadpool_limits(1):
        sums = [Sums.of(*each) for each in zip(embeddings, features, strict=True)]
        rest = [reduce(add, [other for k, other in enumerate(sums) if k != held]) for held in range(len(sums))]

        def error(penalty: float) -> float:
            return sum(left.error(others.solve(penalty)) for left, others in zip(sums, rest, strict=True))

        solution = reduce(add, sums).solve(min(PENALTIES, key=error))
    return lambda z: z.astype(np.float64) @ solution[:-1] + solution[-1]


def prototypes_of(z: Tensor, count: int, parameters: feddep.Parameters, seed: int, client: int) -> Prototypes:
    """What a client sends, found as in a run; without any clustering where each node is its own cluster."""
    if count < len(z):
        return find_prototypes(z, count, parameters.clustering, seed, f"client{client}")
    return Prototypes(z, z.new_ones(len(z)).cumsum(0).long() - 1)


def judge(graph: Graph, prototypes: Prototypes, reconstructed: np.ndarray, guess: np.ndarray) -> dict[str, float]:
    """How good a reconstruction is.

    Args:
        graph: the client's subgraph.
        prototypes: its prototypes, and the cluster of each node; repeated ones count once.
        reconstructed: features that were reconstructed from each prototype, shape (C, F).
        guess: what the attacker would say of any cluster, shape (F,).
    """
    cluster = prototypes.cluster.cpu().numpy()
    members = np.bincount(cluster)
    x = graph.features.toarray()
    means = np.zeros((len(members), x.shape[1]))
    np.add.at(means, cluster, x)
    means /= members[:, None]
    reconstructed = reconstructed[: len(members)]
    error = ((reconstructed - means) ** 2).sum() / max(((guess - means) ** 2).sum(), 1e-12)
    lengths = np.maximum(np.linalg.norm(x - guess, axis=1), 1e-12)
    likest = (((reconstructed - guess) @ (x - guess).T) / lengths).argmax(axis=1)  # by cosine, of what differs from the guess
    match = cluster[likest] == np.arange(len(members))
    return {"error": float(error), "match": float(match.mean()), "chance": float((members / len(x)).mean())}


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean, least and largest over clients, of each knowledge and number of prototypes."""
    found = []
    for knowledge in KNOWLEDGE:
        of_knowledge = [row for row in rows if row["knowledge"] == knowledge]
        for count in [*sorted({row["prototypes"] for row in of_knowledge if not row["every_node"]}), None]:
            some = [row for row in of_knowledge if (row["every_node"] if count is None else row["prototypes"] == count)]
            of: dict[str, Any] = {"knowledge": knowledge, "prototypes": count, "clients": len(some)}
            for measure_ in ("error", "match", "chance"):
                values = [row[measure_] for row in some]
                of |= {measure_: float(np.mean(values)), f"{measure_}_low": min(values), f"{measure_}_high": max(values)}
            found.append(of)
    return found
