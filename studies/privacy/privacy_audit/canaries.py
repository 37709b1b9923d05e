"""Lower bounds on ε from canaries: runs with and without one edge, everything else being known to
the adversary.

The canary edge joins a training node u to a node v that is inserted into a client's subgraph in
both worlds: v has no other edge, is no training node, and has one feature that no other node has,
so that the worlds differ in one edge.  Initial weights are the same in all runs; what is drawn in
training differs from run to run, and is the same in both worlds.  Each kind of message gives a
statistic, from which :func:`epsilon_lower_bound` bounds ε.

DP-SGD is audited by many canaries in one run, see :mod:`.one_run`: in one update of 368 thousand
noised weights, a single canary shows next to nothing even where nothing is promised.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from feddep.graph.graph import Graph
from feddep.graph.sampling import sample_neighbours
from feddep.methods import registry
from feddep.methods.feddep import WithoutNFDPParameters, mending, pretraining
from feddep.methods.feddep.fused import MendedTable
from feddep.methods.feddep.prototypes import find_prototypes
from feddep.methods.method import run_steps
from feddep.privacy.accountant import one_sampling
from feddep.privacy.dpsgd import Privacy
from feddep.privacy.profile import exact_guarantee
from feddep.training.learner import Learner
from feddep.training.task import Task
from feddep.utils import seeding
from feddep.utils.progress import track
from studies.privacy.privacy_audit import one_run
from studies.privacy.privacy_audit.attack_statistics import epsilon_lower_bound
from studies.privacy.privacy_audit.inserting import with_nodes
from studies.privacy.privacy_audit.updates import convolutions, train_locally

DELTA = 1e-5
"""The δ at which ε is bounded."""

DEGREES = (15, 1)
"""Numbers of neighbours that u has without the canary, if a node has so many: FedDEP's best case,
and its worst but one.
"""

SAMPLINGS, UPDATES, PROTOTYPES = 20_000, 400, 60
"""Runs of each world."""

SHADOW_RUNS = 0.5
"""Further runs that an attack learns from, as a share of those that it is evaluated on."""

Row = dict[str, Any]

Model = Callable[[Task], Any]
"""From a world to a model with its initial weights, the same in both worlds."""


def measure(task: Task, parameters: WithoutNFDPParameters) -> list[Row]:
    """Audit all canaries.

    Returns:
        Rows of releases, what is released; degree, number of neighbours of u without the canary;
        runs of each world, half of them evaluated; the claimed guarantee (promised_epsilon,
        promised_delta, and promise, its source); and the result of :func:`evaluate_test`.  Then
        those of :func:`.one_run.measure`.
    """
    fanout = task.setting.fanout
    rows = [
        sampling_row(degree, fanout, task.seed, SAMPLINGS) for degree in dict.fromkeys((15, fanout))
    ]
    steps = run_steps(task, parameters, registry.find("feddep_wo_nfdp").steps(parameters))
    best, worst = (insert_canary(task, degree) for degree in DEGREES)
    mended = steps["generator"].of_clients("mended")[best.client]
    table = MendedTable(
        best.worlds[0].graph.features, torch.cat([mended, torch.zeros_like(mended[:1])])
    )
    feddep: Model = partial(mending.new_classifier, parameters=parameters)
    return [
        *rows,
        update_row("FedAvg: one model update", best, Task.new_model, Learner),
        update_row(
            "FedDEP: one model update, given what was generated",
            best,
            feddep,
            partial(Learner, table=table),
        ),
        update_row("FedAvg: one model update", worst, Task.new_model, Learner),
        prototypes_row(worst, parameters),
        *one_run.measure(task, Privacy(parameters.sigma, parameters.clip), DELTA),
    ]


def _row(
    releases: str,
    degree: int,
    worlds: Sequence[np.ndarray],
    epsilon: float,
    delta: float,
    promise: str,
) -> Row:
    """A row, from the statistic in the runs with and without the edge and the claimed guarantee."""
    present, absent = worlds
    claimed = {"promised_epsilon": epsilon, "promised_delta": delta, "promise": promise}
    bound = epsilon_lower_bound(present, absent, DELTA)
    return {"releases": releases, "degree": degree, "runs": len(present), **claimed, **bound}


class Canary(NamedTuple):
    """A client with a canary.

    Attributes:
        client: the client's number.
        worlds: the run of this client alone, with the edge {u, v} and without.
        target: u.
        node: v, the last node; its own feature is the last, too.
        degree: number of neighbours of u without the canary.
    """

    client: int
    worlds: tuple[Task, Task]
    target: int
    node: int
    degree: int


def insert_canary(task: Task, degree: int) -> Canary:
    """A canary next to the training node with the number of neighbours nearest to ``degree``, in
    the smallest such client.
    """
    parts = task.subgraphs()
    _, _, client, u = min(
        (abs(int(graph.degrees[node]) - degree), graph.num_nodes, client, node)
        for client, (graph, split) in enumerate(parts)
        for node in split.train.tolist()
    )
    graph, split = parts[client]
    v = graph.num_nodes
    worlds = [
        with_nodes(graph, np.array([[u, v]])[:edges], np.zeros(1, dtype=int), graph.labels[[u]])
        for edges in (1, 0)
    ]
    present, absent = (
        replace(task, graph=world, split=split, partition=None, step_results={}) for world in worlds
    )
    return Canary(client, (present, absent), u, v, int(graph.degrees[u]))


def sampling_row(degree: int, fanout: int, seed: int, runs: int) -> Row:
    """One sampling of ``fanout`` from ``degree`` neighbours, and from one more.

    The statistic is whether the canary was drawn; between d and d + 1 neighbours, whether one was
    drawn twice.
    """
    samples = []
    for leaves in (degree + 1, degree):
        edges = np.column_stack([np.zeros(leaves, dtype=np.int64), np.arange(1, leaves + 1)])
        star = Graph.from_edges(edges, np.zeros((leaves + 1, 1)), np.zeros(leaves + 1), 1)
        rng = seeding.generator(seed, "canary", "sampling", degree, leaves)
        samples.append(sample_neighbours(star, np.zeros(runs, dtype=np.int64), fanout, rng))
    if degree == fanout:
        statistic = [(np.diff(np.sort(each, axis=1), axis=1) == 0).any(axis=1) for each in samples]
    else:
        statistic = [(each == degree + 1).any(axis=1) for each in samples]
    worlds = [each.astype(np.float64) for each in statistic]
    claimed = one_sampling(degree + 1, fanout)
    return _row(
        "one neighbour sampling",
        degree,
        worlds,
        claimed.epsilon,
        claimed.delta,
        "FedDEP, Lemma B.1",
    )


def canary_weights(
    canary: Canary, repetitions: Sequence[int], new_model: Model, new_learner: Callable, name: str
) -> list[np.ndarray]:
    """After one round, the first convolution's weights for v's own feature of neighbours in each
    world, shape (R, H).

    Only u reads v, so that they change only if the canary was drawn.  ``repetitions`` are numbers
    of runs, which name their draws; ``new_learner`` is called like
    :class:`feddep.training.learner.Learner`, and ``name`` is of the progress bar.
    """
    found: list[list[np.ndarray]] = [[], []]
    for repetition in track(repetitions, name):
        for weights, task in zip(found, canary.worlds, strict=True):
            model = new_model(task)
            seed = _seed(task, repetition)
            learner = new_learner(
                task.graph, task.split.train, task.setting, seed, "client", task.device
            )
            train_locally(model, learner, task.setting, task.setting.local_epochs)
            weights.append(convolutions(model.state_dict())[0].neighbours[-1].copy())
    return [np.array(each) for each in found]


def _seed(task: Task, repetition: int) -> int:
    return seeding.derive_seed(task.seed, "canary", repetition)


def update_row(releases: str, canary: Canary, new_model: Model, new_learner: Callable) -> Row:
    """One update without noise; the statistic is how far v's weights have moved."""
    weights = canary_weights(
        canary, range(UPDATES), new_model, new_learner, f"{releases}, {canary.degree} neighbours"
    )
    initial = weights[1][0]  # nobody reads v there
    worlds = [np.linalg.norm(each - initial, axis=1) for each in weights]
    return _row(
        releases,
        canary.degree,
        worlds,
        0.0,
        *_sampling_claim(canary, canary.worlds[0].setting.local_epochs),
    )


def prototypes_row(canary: Canary, parameters: Any) -> Row:
    """The prototypes of one pretraining; the statistic is a discriminant learned from further
    runs.
    """
    count = parameters.prototypes or canary.worlds[0].graph.num_classes
    shadow, releases = int(SHADOW_RUNS * PROTOTYPES), f"FedDEP: {count} prototypes"
    found: list[list[np.ndarray]] = [[], []]
    for repetition in track(range(PROTOTYPES + shadow), f"{releases}, {canary.degree} neighbours"):
        for world, task in enumerate(canary.worlds):
            task, seed = (
                replace(task, setting=pretraining.setting_of(parameters, task.setting)),
                _seed(task, repetition),
            )
            gnn = pretraining.new_gnn(task, parameters, "client")
            learner = Learner(
                task.graph, task.split.train, task.setting, seed, "client", task.device
            )
            train_locally(gnn, learner, task.setting, parameters.pretraining_epochs)
            z = pretraining.embeddings_of(gnn, task.graph, task.device)
            prototypes = find_prototypes(z, count, parameters.clustering, seed, "client").embeddings
            found[world].append(prototypes.cpu().numpy())
    statistic = discriminant([np.array(each[:shadow]) for each in found])
    worlds = [statistic(np.array(each[shadow:])) for each in found]
    return _row(
        releases,
        canary.degree,
        worlds,
        0.0,
        *_sampling_claim(canary, parameters.pretraining_epochs),
    )


def discriminant(worlds: Sequence[np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """A linear discriminant with a diagonal covariance between two worlds of prototypes, whatever
    their order in each run.

    From the prototypes of runs of each world, shape (R, C, d), to a function from (R', C, d) to one
    number a run, shape (R',).
    """
    reference = worlds[0][0]

    def aligned(runs: np.ndarray) -> np.ndarray:
        distances = [((reference[:, None] - run[None]) ** 2).sum(axis=2) for run in runs]
        return np.array(
            [
                run[linear_sum_assignment(d)[1]].ravel()
                for run, d in zip(runs, distances, strict=True)
            ]
        )

    present, absent = (aligned(world) for world in worlds)
    difference = present.mean(axis=0) - absent.mean(axis=0)
    variance = (present.var(axis=0) + absent.var(axis=0)) / 2
    direction = difference / np.maximum(variance, 1e-3 * max(variance.mean(), 1e-12))
    return lambda runs: aligned(runs) @ direction


def _sampling_claim(canary: Canary, epochs: int) -> tuple[float, str]:
    """δ, with ε = 0, of the exact profile for u's list by the paper's count of samplings, L per
    epoch; and its source.
    """
    setting = canary.worlds[0].setting
    samplings = setting.layers * epochs
    return exact_guarantee(
        canary.degree, setting.fanout, samplings
    ).delta, f"exact profile, {samplings} samplings"
