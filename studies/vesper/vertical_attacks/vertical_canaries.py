"""Edge inference on vertical training from all that party B is sent, as an audit with one run.

A canary is a pair of nodes u, v that are added to the graph; a fair coin decides whether they are
joined, and nothing else reaches them.  Both are training nodes, so that B gets their rows whenever
a batch holds them, and test nodes as well, so that B gets them in every evaluation.  All canaries
have the same features, u one that no other node has, and v another, so that their rows have the
same law but for the coin.  One training on the graph with all canaries is enough to guess all
coins, and the number of right guesses bounds ε from below (Steinke, Nasr and Jagielski 2023;
:func:`one_run_bound`).

The adversary knows everything but coins and noise: features, batches, and both parties' weights at
each step.  So the rows of joined and of other pairs can be simulated before each message, with the
same noise in both.  The score of a canary is the sum, over its rows in all messages, of Fisher's
linear discriminant: (x − (m₁ + m₀)/2)ᵀ C⁻¹ (m₁ − m₀), x being the rows of a node from all layers
side by side, m₁ and m₀ their simulated means with and without the edge, and C the mean of both
covariances. That is the log-likelihood ratio of a message if rows are Gaussian; ReLU and
normalisation make them something else, which costs power and nothing more, as any score gives a
bound that holds.

Truncated message passing (D_min) ignores pairs without other neighbours, so there every u and v has
D_min neighbours more.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.graph.graph import Graph
from feddep.graph.split import Split
from feddep.methods.method import Method
from feddep.methods.vesper import PerturbedParameters, TruncatedParameters
from feddep.methods.vesper.graph_party import RootBatches
from feddep.methods.vesper.networks import feature_rows
from feddep.methods.vesper.noise_budget import accounted_epsilon, aggregation_of
from feddep.methods.vesper.split_training import (
    ALL,
    TEST,
    TRAINING,
    VALIDATION,
    SplitTraining,
    new_sampler,
)
from feddep.training.task import Task
from feddep.utils import seeding
from studies.privacy.privacy_audit.attack_statistics import auc, one_run_bound
from studies.privacy.privacy_audit.inserting import with_nodes

CANARIES = 500
"""Number m of canaries."""
DELTA = 1e-5
"""δ of the bound and of the promises beside it."""
PROMISES = ("certified", "rdp")
"""The accountants whose ε stands beside the bound."""
_SIMULATED = 512
"""Pairs that are simulated for each message, joined and not."""
_RIDGE = 1e-3
"""What is added to the diagonal of C, as a share of its mean."""


def measure(method: Method, task: Task, parameters: Any) -> dict[str, float | int]:
    """Audit a method with one run; the parameters have a noise scale and no budget.

    Returns:
        edge_auc: AUC of the scores; what :func:`one_run_bound` returns; promised_certified and
        promised_rdp: ε at the same δ of the training with canaries, by these accountants; ∞ where
        they promise nothing.
    """
    world, joined = with_canaries(task, parameters, CANARIES)
    watched = Watched(CANARIES, _further(parameters))
    method.run(
        replace(world, observers=(watched.receive,), inspectors=(watched.inspect,)), parameters
    )
    promises = {f"promised_{name}": promised(method, world, parameters, name) for name in PROMISES}
    return {
        "edge_auc": auc(watched.scores, joined),
        **one_run_bound(watched.scores, joined, DELTA),
        **promises,
    }


def promised(method: Method, task: Task, parameters: Any, accountant: str) -> float:
    """ε at δ that an accountant promises for a run; ∞ where it promises nothing: no noise, or none
    that it has a bound for.
    """
    if not isinstance(parameters, PerturbedParameters) or parameters.theta == 0:
        return float("inf")
    nodes, aggregation = len(task.split.train), aggregation_of(method.name, parameters)
    found = accounted_epsilon(
        nodes, task.setting, parameters, aggregation, accountant, parameters.theta, DELTA
    )
    return float("inf") if found is None else found


def with_canaries(task: Task, parameters: Any, canaries: int) -> tuple[Task, np.ndarray]:
    """The task with canaries, and whether each is joined, shape (m,).

    The nodes of canaries come after all others: u of each, v of each, and then their further
    neighbours.
    """
    rng = seeding.generator(task.seed, "vertical canaries")
    joined = rng.random(canaries) < 0.5
    graph, split = task.graph, task.split
    pairs, further, kinds = _canary_nodes(canaries, _further(parameters))
    labels = rng.integers(graph.num_classes, size=len(kinds))
    world = with_nodes(graph, graph.num_nodes + np.vstack([pairs[joined], further]), kinds, labels)
    ends = graph.num_nodes + pairs.T.ravel()
    split = Split(
        np.concatenate([split.train, ends]), split.val, np.concatenate([split.test, ends])
    )
    return replace(task, name=f"{task.name}: canaries", graph=world, split=split), joined


def _further(parameters: Any) -> int:
    """How many neighbours each node of a canary has beside the other."""
    return parameters.min_degree if isinstance(parameters, TruncatedParameters) else 0


def _canary_nodes(count: int, further: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs (u, v) of so many canaries, edges to further neighbours, and of each node: 0 for u,
    1 for v, 2 for the others.
    """
    ends = 2 * count
    others = np.column_stack(
        [np.repeat(np.arange(ends), further), ends + np.arange(ends * further)]
    )
    return (
        np.arange(ends).reshape(2, count).T,
        others,
        np.repeat([0, 1, 2], [count, count, len(others)]),
    )


class Watched:
    """Watches a training for canaries, each of whose nodes has so many neighbours beside the other.

    ``scores`` are those of each canary so far, the larger, the likelier it is joined; float64,
    shape (m,).
    """

    def __init__(self, canaries: int, further: int) -> None:
        self.scores = np.zeros(canaries)
        self.training: SplitTraining
        self._further = further
        self._batches: RootBatches | None = None
        self._simulated: SimulatedPairs | None = None

    def inspect(self, what: str, training: SplitTraining) -> None:
        """Be shown the training as it begins; one without a graph may come before."""
        self.training = training

    def receive(
        self, client: int, direction: str, kind: str, payload: Mapping[str, Tensor]
    ) -> None:
        """Take in a message, while the weights are those that it was computed with."""
        target, canaries = self.training, len(self.scores)
        if direction == "down" or target.protocol.design is None:
            return  # no row of it depends on an edge
        if self._simulated is None:
            self._simulated = SimulatedPairs(target, self._further)
        first = target.task.graph.num_nodes - 2 * canaries * (1 + self._further)
        numbers = self._nodes(kind) - first
        places = [np.flatnonzero(numbers // canaries == end) for end in (0, 1)]
        if not any(map(len, places)):
            return
        rows = payload["values"].flatten(1).double()
        for at, (weights, middle) in zip(places, self._simulated.discriminants(), strict=True):
            self.scores[numbers[at] % canaries] += (
                ((rows[torch.from_numpy(at).to(rows.device)] - middle) @ weights).cpu().numpy()
            )

    def _nodes(self, kind: str) -> np.ndarray:
        """The nodes whose rows a message holds."""
        task = self.training.task
        known = {
            VALIDATION: task.split.val,
            TEST: task.split.test,
            ALL: np.arange(task.graph.num_nodes),
        }
        if kind in known:
            return known[kind]
        if self._batches is None:  # both parties have one of these
            self._batches = RootBatches(
                task.split.train, task.setting.batch_size, task.seed, f"batches of {TRAINING[0]}"
            )
        return self._batches.draw()


class SimulatedPairs:
    """Pairs like the canaries in a graph of their own, joined and not, with as many further
    neighbours.
    """

    def __init__(self, target: SplitTraining, further: int, count: int = _SIMULATED) -> None:
        task, protocol = target.task, target.protocol
        self._target, self._messages = target, 0
        pairs, others, kinds = _canary_nodes(count, further)
        features = task.graph.features
        samples = np.array(
            [features[:, column].nonzero()[0][0] for column in range(-1 - kinds.max(), 0)]
        )
        self._features = feature_rows(features, samples, task.device)  # of a node of each kind
        nothing = sp.csr_matrix((len(kinds), 1), dtype=np.float32)
        labels = np.zeros(len(kinds), dtype=np.int64)
        self._ends = np.arange(2 * count)
        self._worlds = []
        for edges in (others, np.vstack([others, pairs])):
            graph = Graph.from_edges(edges, nothing, labels, 1)
            rng = seeding.generator(task.seed, "vertical canaries", "neighbours")
            blocks = new_sampler(graph, protocol, task.seed).draw(
                self._ends, task.setting.layers, rng
            )
            degrees = (
                np.minimum(graph.degrees, protocol.degree)[blocks.nodes]
                if protocol.degree_noise
                else blocks.degrees
            )
            self._worlds.append((blocks, kinds[blocks.nodes], degrees))

    @torch.no_grad()
    def rows(self) -> Tensor:
        """Rows as party A would send them now, not joined and joined, of u and v; float64, shape
        (2, 2, pairs, L d).

        Noise is drawn anew in each call, the same for joined pairs as for others.
        """
        task, protocol, model = self._target.task, self._target.protocol, self._target.model
        path = (task.seed, "vertical canaries", "simulation", self._messages)
        self._messages += 1
        encodings = model["encoder"](self._features)
        found = []
        for blocks, kinds, degrees in self._worlds:
            noised = degrees + protocol.degree_noise * seeding.generator(*path, "degrees").normal(
                size=len(degrees)
            )
            generator = seeding.torch_generator(*path, device=task.device)
            layers = model["extractor"](
                encodings[torch.from_numpy(kinds).to(task.device)], blocks, noised, generator
            )
            found.append(torch.cat(layers, dim=1).double().unflatten(0, (2, -1)))
        return torch.stack(found)

    def discriminants(self) -> list[tuple[Tensor, Tensor]]:
        """C⁻¹ (m₁ − m₀) and (m₁ + m₀)/2 for the rows of u and for those of v, each of shape (L
        d,).
        """
        return [_discriminant(*rows) for rows in self.rows().transpose(0, 1)]


def _discriminant(without: Tensor, joined: Tensor) -> tuple[Tensor, Tensor]:
    """Fisher's linear discriminant of two samples, shape (pairs, k) each: its weights, and the
    middle of the means.
    """
    covariance = (torch.cov(without.T) + torch.cov(joined.T)) / 2
    means = without.mean(dim=0), joined.mean(dim=0)
    # Which is all there is without noise.
    covariance.diagonal().add_(_RIDGE * covariance.diagonal().mean() + 1e-9)
    return torch.linalg.solve(covariance, means[1] - means[0]), (means[0] + means[1]) / 2
