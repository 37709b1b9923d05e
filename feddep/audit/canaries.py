"""Lower bounds on ε from canaries: runs with and without one edge, everything else being known to the attacker.

The canary edge joins a training node u to a node v that is put into a client's subgraph for the purpose, in both worlds: v has
no other edge, is not trained on, and has one feature that no other node has.  Node v and all features are known, as edge-level
privacy assumes, so the two worlds differ in one edge.  Initial weights are the same in all runs; what is drawn in training
differs from run to run, and is the same for both worlds.  The tests S are chosen on one half of the runs and judged on the
other (:mod:`feddep.audit.bounds`).

What an attacker looks at:

* one neighbour sampling: whether the canary was drawn; between d and d + 1 neighbours, whether one was drawn twice;
* a model update: the row of the first convolution's weights that takes v's own feature from neighbours.  Nobody but u reads v,
  so that it changes only if the canary was drawn.  Under noise, its projection on how it changes without noise;
* prototypes: the difference between the mean prototypes of both worlds, in units of their deviation, learned from further runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from feddep import mending, pretraining, seeding
from feddep.audit import AuditError
from feddep.audit.bounds import Bound, lower_bound
from feddep.frameworks import feddep_wo_nfdp
from feddep.graph import Graph
from feddep.nn.features import FeatureTable
from feddep.nn.fused import MendedTable
from feddep.privacy.accountant import one_sampling
from feddep.privacy.changed_trees import most_changed, tree_changes
from feddep.privacy.dpsgd import Privacy, PrivateLearner
from feddep.privacy.dpsgd_accounting import changed_level
from feddep.privacy.profile import exact
from feddep.problem import Problem
from feddep.progress import track
from feddep.prototypes import find_prototypes
from feddep.sampling import sample_neighbours
from feddep.steps import make_all
from feddep.training import Learner, new_optimizer

DELTA = 1e-5
"""The δ at which ε is bounded."""

DEGREES = (15, 1)
"""Numbers of neighbours that u has without the canary, if a node has so many: FedDEP's best case, and its worst but one."""

SAMPLINGS, UPDATES, PROTOTYPES = 20_000, 400, 60
"""Runs of each world."""

LEARNED = 0.5
"""Further runs that an attack learns from, as a share of those that it is judged by."""


@dataclass(frozen=True)
class Line:
    """What one canary shows.

    Attributes:
        releases: what is given out.
        degree: number of neighbours of u without the canary.
        runs: runs of each world, of which half are judged.
        bound: the lower bounds.
        promised_epsilon, promised_delta: what is promised for it; ∞ for no finite ε.
        promise: by whom, or by what.
    """

    releases: str
    degree: int
    runs: int
    bound: Bound
    promised_epsilon: float
    promised_delta: float
    promise: str

    def as_dict(self) -> dict[str, Any]:
        """A row of a table."""
        row = {name: value for name, value in vars(self).items() if name != "bound"}
        return {**row, **asdict(self.bound)}


def measure(problem: Problem, parameters: Any, repetitions: int | None = None) -> list[dict[str, Any]]:
    """All canaries.

    Args:
        problem: the run.
        parameters: those of FedDEP w/o NFDP, which are FedDEP's and those of the noise.
        repetitions: runs of each world; by default of each canary its own number.

    Raises:
        AuditError: if the parameters are another framework's.
    """
    if not isinstance(parameters, feddep_wo_nfdp.Parameters):
        raise AuditError("canaries need the parameters of FedDEP and those of its noise; use --framework feddep_wo_nfdp")
    fanout = problem.setting.fanout
    lines = [of_sampling(degree, fanout, problem.seed, repetitions or SAMPLINGS) for degree in dict.fromkeys((15, fanout))]
    mended = make_all(problem, parameters, feddep_wo_nfdp.steps(parameters))["generator"].of_clients("mended")
    for degree in DEGREES:
        client, planted = plant(problem, degree)
        z = torch.cat([mended[client], mended[client].new_zeros(1, mended[client].shape[1])])
        lines.append(of_update("FedAvg: one model update", planted, repetitions or UPDATES, _plain(planted)))
        if degree == DEGREES[0]:
            private = partial(PrivateLearner, privacy=Privacy(parameters.sigma, parameters.clip))
            releases = "FedDEP: one model update, given what was generated"
            lines.append(of_update(releases, planted, repetitions or UPDATES, _fused(planted, parameters, z, Learner)))
            lines.append(
                of_noised_update(planted, parameters, repetitions or UPDATES, _fused(planted, parameters, z, private), z)
            )
        if degree == DEGREES[-1]:
            lines.append(of_prototypes(planted, parameters, repetitions or PROTOTYPES))
    return [line.as_dict() for line in lines]


@dataclass(frozen=True, eq=False)
class Planted:
    """A client with a canary.

    Attributes:
        without: the run of this client alone, v without any edge.
        present: the same with the edge {u, v}.
        hub: u.
        canary: v, the last node.
        degree: number of neighbours of u without the canary.
    """

    without: Problem
    present: Problem
    hub: int
    canary: int
    degree: int

    @property
    def worlds(self) -> tuple[Problem, Problem]:
        """With and without."""
        return self.present, self.without

    @property
    def feature(self) -> int:
        """v's own feature, the last."""
        return self.without.graph.num_features - 1


def plant(problem: Problem, degree: int) -> tuple[int, Planted]:
    """Put a canary beside the training node whose number of neighbours is nearest to ``degree``, in the smallest such client.

    Raises:
        AuditError: if no client has training nodes.
    """
    parts = problem.subgraphs()
    found = [
        (abs(int(graph.degrees[node]) - degree), graph.num_nodes, client, node)
        for client, (graph, split) in enumerate(parts)
        for node in split.train.tolist()
    ]
    if not found:
        raise AuditError("no client has a training node to plant a canary beside")
    _, _, client, hub = min(found)
    graph, split = parts[client]
    lengths = np.sqrt(np.asarray(graph.features.multiply(graph.features).sum(axis=1)).ravel())
    own = sp.csr_matrix(np.array([[np.median(lengths)]], dtype=np.float32))
    features = sp.csr_matrix(sp.block_diag([graph.features, own]), dtype=np.float32)
    labels = np.append(graph.labels, graph.labels[hub])
    edges, v = graph.edges(), graph.num_nodes
    worlds = [Graph.from_edges(joined, features, labels, graph.num_classes) for joined in (edges, np.vstack([edges, [[hub, v]]]))]
    without, present = (replace(problem, graph=world, split=split, partition=None, made={}) for world in worlds)
    return client, Planted(without, present, hub, v, int(graph.degrees[hub]))


def of_sampling(degree: int, fanout: int, seed: int, runs: int) -> Line:
    """One drawing of ``fanout`` from ``degree`` neighbours, and from one more."""
    drawn = []
    for leaves in (degree + 1, degree):
        edges = np.column_stack([np.zeros(leaves, dtype=np.int64), np.arange(1, leaves + 1)])
        star = Graph.from_edges(edges, np.zeros((leaves + 1, 1)), np.zeros(leaves + 1), 1)
        rng = seeding.generator(seed, "canary", "sampling", degree, leaves)
        drawn.append(sample_neighbours(star, np.zeros(runs, dtype=np.int64), fanout, rng))
    repeated = [(np.diff(np.sort(each, axis=1), axis=1) == 0).any(axis=1) for each in drawn]
    statistic = repeated if degree == fanout else [(each == degree + 1).any(axis=1) for each in drawn]
    published = one_sampling(degree + 1, fanout)
    present, absent = (each.astype(np.float64) for each in statistic)
    bound = lower_bound(present, absent, DELTA)
    return Line("one neighbour sampling", degree, runs, bound, published.epsilon, published.delta, "FedDEP, Lemma B.1")


Run = Callable[[int, int], nn.Module]
"""From the number of a world (0 with, 1 without the edge) and that of a repetition to a model trained for one round."""


def _train(problem: Problem, model: Any, learner: Any) -> nn.Module:
    optimizer = new_optimizer(model, problem.setting)
    for _ in range(problem.setting.local_epochs):
        learner.epoch(model, optimizer)
    return model


def _seed(problem: Problem, repetition: int) -> int:
    return seeding.derive_seed(problem.seed, "canary", repetition)


def _plain(planted: Planted) -> Run:
    """FedAvg's first round on this client."""
    tables = [FeatureTable(world.graph.features, world.setting.fanout) for world in planted.worlds]

    def run(world: int, repetition: int) -> nn.Module:
        problem = planted.worlds[world]
        rest = (_seed(problem, repetition), "client", problem.device, tables[world])
        return _train(problem, problem.new_model(), Learner(problem.graph, problem.split.train, problem.setting, *rest))

    return run


def _fused(planted: Planted, parameters: Any, z: Tensor, learner: Any) -> Run:
    """The same for FedDEP's classifier, on given generated neighbours z."""
    tables = [MendedTable(world.graph.features, z, world.setting.fanout) for world in planted.worlds]

    def run(world: int, repetition: int) -> nn.Module:
        problem = planted.worlds[world]
        rest = (_seed(problem, repetition), "client", problem.device, tables[world])
        learns = learner(problem.graph, problem.split.train, problem.setting, *rest)
        return _train(problem, mending.new_classifier(problem, parameters), learns)

    return run


def rows_of(planted: Planted, run: Run, repetitions: Sequence[int], name: str) -> list[np.ndarray]:
    """For each world the weights that take v's own feature from neighbours, as trained; shape (R, H)."""
    first: list[list[np.ndarray]] = [[], []]
    for repetition in track(repetitions, name):
        for world in (0, 1):
            model: Any = run(world, repetition)
            convolution = model.convolutions[0]
            first[world].append(convolution.weight.detach()[convolution.inputs + planted.feature].numpy().copy())
    return [np.array(each) for each in first]


def of_update(releases: str, planted: Planted, runs: int, run: Run) -> Line:
    """One update without noise: how far v's row has moved."""
    present, absent = rows_of(planted, run, range(runs), f"{releases}, {planted.degree} neighbours")
    start = absent[0]  # nobody reads v there: the initial weights
    bound = lower_bound(np.linalg.norm(present - start, axis=1), np.linalg.norm(absent - start, axis=1), DELTA)
    return Line(releases, planted.degree, runs, bound, 0.0, *_by_theorem(planted, planted.without.setting.local_epochs))


def of_noised_update(planted: Planted, parameters: feddep_wo_nfdp.Parameters, runs: int, run: Run, z: Tensor) -> Line:
    """One update by DP-SGD: how far v's row has moved in the direction in which it does without noise."""
    quiet = _fused(planted, parameters, z, partial(PrivateLearner, privacy=Privacy(0.0, parameters.clip)))
    name = f"DP-SGD, {planted.degree} neighbours"
    learned = range(runs, runs + int(LEARNED * runs))
    with_edge, start = (each.mean(axis=0) for each in rows_of(planted, quiet, learned, f"{name}: without noise"))
    present, absent = ((each - start) @ (with_edge - start) for each in rows_of(planted, run, range(runs), name))
    bound = lower_bound(present, absent, DELTA)
    problem = planted.present
    edges = problem.graph.edges()
    at = np.flatnonzero((edges == [planted.hub, planted.canary]).all(axis=1))
    changes = tree_changes(problem.graph, problem.split.train, problem.setting.layers, problem.setting.fanout)[at]
    learner = PrivateLearner(
        problem.graph, problem.split.train, problem.setting, 0, "client", privacy=Privacy(parameters.sigma, parameters.clip)
    )
    steps = learner.steps_per_epoch * problem.setting.local_epochs
    epsilon = changed_level(parameters.sigma, most_changed(changes, learner.rate), steps, DELTA).least
    releases = f"FedDEP w/o NFDP, FedGNN: one model update by DP-SGD, σ = {parameters.sigma:g}"
    promise = f"accountant, edge level, {changes.nnz} roots, bound by trees"
    return Line(releases, planted.degree, runs, bound, epsilon, DELTA, promise)


def of_prototypes(planted: Planted, parameters: Any, runs: int) -> Line:
    """The prototypes of one pretraining."""
    how = parameters.pretraining
    count = parameters.prototypes or planted.without.graph.num_classes
    learned, releases = int(LEARNED * runs), f"FedDEP: {count} prototypes"
    found: list[list[np.ndarray]] = [[], []]
    for repetition in track(range(runs + learned), f"{releases}, {planted.degree} neighbours"):
        for world, problem in enumerate(planted.worlds):
            setting = pretraining.setting_of(how, problem.setting)
            gnn = pretraining.new_gnn(problem.graph, how, setting, problem.seed, "client", problem.device)
            optimizer, seed = new_optimizer(gnn, setting), _seed(problem, repetition)
            learner = Learner(problem.graph, problem.split.train, setting, seed, "client", problem.device)
            for _ in range(how.epochs):
                learner.epoch(gnn, optimizer)
            z = pretraining.embeddings_of(gnn, problem.graph, problem.device)
            prototypes = find_prototypes(z, count, parameters.clustering, seed, "client").embeddings
            found[world].append(prototypes.cpu().numpy())
    statistic = separating([np.array(each[:learned]) for each in found])
    present, absent = (statistic(np.array(each[learned:])) for each in found)
    bound = lower_bound(present, absent, DELTA)
    return Line(releases, planted.degree, runs, bound, 0.0, *_by_theorem(planted, how.epochs))


def separating(worlds: Sequence[np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """A statistic that tells two worlds of prototypes apart, whatever order they come in.

    Args:
        worlds: prototypes of runs of each, shape (R, C, d).

    Returns:
        A function from prototypes of runs, shape (R', C, d), to one number each: linear discriminant with a diagonal covariance.
    """
    reference = worlds[0][0]

    def ordered(runs: np.ndarray) -> np.ndarray:
        found = []
        for run in runs:
            distances = ((reference[:, None] - run[None]) ** 2).sum(axis=2)
            found.append(run[linear_sum_assignment(distances)[1]].ravel())
        return np.array(found)

    rows = [ordered(world) for world in worlds]
    difference = rows[0].mean(axis=0) - rows[1].mean(axis=0)
    variance = (rows[0].var(axis=0) + rows[1].var(axis=0)) / 2
    direction = difference / np.maximum(variance, 1e-3 * max(variance.mean(), 1e-12))
    return lambda runs: ordered(runs) @ direction


def _by_theorem(planted: Planted, epochs: int) -> tuple[float, str]:
    """δ that the paper's count of samplings, L an epoch, gives for u's list by the exact profile; it holds with ε = 0."""
    setting = planted.without.setting
    return exact(
        planted.degree, setting.fanout, setting.layers * epochs
    ).delta, f"exact profile, {setting.layers * epochs} samplings"
