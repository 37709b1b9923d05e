"""Lower bounds on the ε of DP-SGD from many canary edges in one training, every step of which is
watched.

A canary is a pair of nodes u, v that are inserted into a client's subgraph: u is a training node
without other neighbours, v has one feature that no other node has.  A coin decides whether they are
joined.  One training on the graph with all canaries is enough to guess all coins
(:func:`one_run_bound`); several trainings with coins of their own are together one mechanism with
as many more canaries, as each edge is in one of them.

The adversary sees the noised gradient of every step, and knows all but the coins, the batches and
the noise.  Of canary i it computes from the weights before the step what u adds to the sum of
clipped gradients in the rows that belong to the feature of v: d_i if it is sampled and joined, and
0 else.  With x = ⟨noised sum, d_i⟩ in these rows the step's likelihood ratio is

    1 − q + q exp((x − ‖d_i‖² / 2) / (σC)²),

but for the dropout of the training, which d_i is computed without.  The canary's guarantee is that
of an edge which one training node reads and always draws: the simple bound for k = 1, which a
canary attains whose gradient the edge turns round.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from feddep.graph.graph import Graph
from feddep.graph.sampling import SampledTrees, sample_trees
from feddep.graph.split import Split
from feddep.privacy.dpsgd import Privacy, PrivateLearner, start_gradients
from feddep.privacy.dpsgd_accounting import binomial_changes, edge_level
from feddep.privacy.ghost_clipping import add_clipped, recorded
from feddep.training.task import Task
from feddep.utils import seeding
from feddep.utils.progress import track
from studies.privacy.privacy_audit.attack_statistics import one_run_bound
from studies.privacy.privacy_audit.inserting import with_nodes
from studies.privacy.privacy_audit.updates import train_locally

RUNS, CANARIES = 20, 100
"""Trainings with each noise, and canaries in each of them."""

NOISES = (1.0, 1 / 4, 1 / 20)
"""The noise that is audited, and less noise as a positive control, as multiples of σ."""

SIMULATIONS = 20
"""Simulated audits of canaries that attain the guarantee."""

Row = dict[str, Any]


def measure(task: Task, privacy: Privacy, delta: float) -> list[Row]:
    """Audit DP-SGD with each noise of :data:`NOISES`, in the client with the fewest training nodes,
    over all rounds of the run.

    Returns:
        A row for each noise: sigma, steps T, canaries (m, of all trainings), guesses (r), correct,
        the bound low with its confidence, the guarantee of a canary (promised_epsilon,
        promised_delta and promise, its source); attainable, the mean bound of simulated audits of
        canaries that attain the guarantee, and most, the bound if all of the r guesses were right.
    """
    part = min(
        (part for part in task.subgraphs() if len(part[1].train)),
        key=lambda part: len(part[1].train),
    )
    rows: list[Row] = []
    for factor in NOISES:
        noise = replace(privacy, sigma=factor * privacy.sigma)
        name = f"DP-SGD, σ = {noise.sigma:g}"
        found = [
            train_watched(task, part, noise, CANARIES, run)
            for run in track(range(RUNS), f"{name}: one run")
        ]
        scores, joined = (
            np.concatenate(each)
            for each in zip(*((one.scores, one.joined) for one in found), strict=True)
        )
        rate, steps = found[0].rate, found[0].steps
        epsilon = edge_level(noise.sigma, binomial_changes(1, rate), steps, delta).least
        rng = seeding.generator(task.seed, "audit", "one run", "simulation")
        attained = [
            one_run_bound(*simulated(noise.sigma, rate, steps, len(scores), rng), delta)["low"]
            for _ in range(SIMULATIONS)
        ]
        of: Row = {
            "releases": f"{name}, every step",
            "degree": 0,
            "runs": RUNS,
            "sigma": noise.sigma,
            "steps": steps,
        }
        of |= {
            "promised_epsilon": epsilon,
            "promised_delta": delta,
            "promise": "accountant, edge level, 1 root",
        }
        rows.append(
            {**of, **one_run_bound(scores, joined, delta), "attainable": float(np.mean(attained))}
        )
    return rows


class Watched(PrivateLearner):
    """A private learner whose steps are watched for canaries.

    Attributes:
        scores: log-likelihood ratio of each canary so far, joined against not; float64, shape (m,).
        joined: the coins, shape (m,).
    """

    def __init__(
        self,
        with_all: Graph,
        roots: np.ndarray,
        joined: np.ndarray,
        *arguments: Any,
        privacy: Privacy,
    ) -> None:
        """Prepare for training: ``with_all`` is the graph with all canary edges, ``roots`` are the
        nodes u, whose features are the last m, in the same order, and ``joined`` the coins; the
        others are arguments of :class:`PrivateLearner`.
        """
        super().__init__(*arguments, privacy=privacy)
        self.scores, self.joined = np.zeros(len(roots)), joined
        self._variance = (privacy.sigma * privacy.clip) ** 2
        self._roots = roots
        # An only neighbour is all that is drawn: one draw shows what any number does.
        self._trees = sample_trees(with_all, roots, (1,) * len(self.fanouts), self._sampling)

    def _step(self, model: Any, trees: SampledTrees, labels: Tensor) -> Tensor:
        start_gradients(model, 0.0, self._noise)
        logits, outputs = recorded(model, self._trees, self._table, self._num_nodes)
        losses = cross_entropy(logits, self._labels[self._roots], reduction="none")
        add_clipped(model, outputs, losses, self._privacy.clip)
        expected = self._rows(model)
        sampled = super()._step(model, trees, labels)
        products, squares = (
            (expected * rows).sum(dim=(0, 2)).double().cpu().numpy()
            for rows in (self._rows(model) * self._expected, expected)
        )
        exponents = (products - squares / 2) / self._variance
        with np.errstate(divide="ignore"):  # q may be 1
            self.scores += np.logaddexp(np.log1p(-self.rate), np.log(self.rate) + exponents)
        return sampled

    def _rows(self, model: Any) -> Tensor:
        """The gradient of the first convolution in the rows of the canaries' features, own and
        neighbours', shape (2, m, H).
        """
        gradient = model.convolutions[0].weight.grad
        return torch.stack([half[-len(self._roots) :] for half in gradient.chunk(2)]).clone()


def train_watched(
    task: Task, part: tuple[Graph, Split], privacy: Privacy, canaries: int, run: int
) -> Watched:
    """Train on a client's graph with canaries; returns the learner that has watched it."""
    graph, split = part
    rng = seeding.generator(task.seed, "audit", "one run", run)
    roots = graph.num_nodes + np.arange(canaries)
    pairs = np.column_stack([roots, roots + canaries])
    labels = np.tile(rng.integers(graph.num_classes, size=canaries), 2)
    joined = rng.random(canaries) < 0.5
    features = np.concatenate([np.full(canaries, -1), np.arange(canaries)])
    real, with_all = (with_nodes(graph, some, features, labels) for some in (pairs[joined], pairs))
    world = replace(task, graph=real, partition=None, step_results={})
    seed = seeding.derive_seed(task.seed, "canary", "one run", run)
    train = np.concatenate([split.train, roots])
    learner = Watched(
        with_all,
        roots,
        joined,
        real,
        train,
        task.setting,
        seed,
        "client",
        task.device,
        privacy=privacy,
    )
    model: nn.Module = world.new_model()
    for _ in range(task.setting.rounds):
        train_locally(model, learner, task.setting, task.setting.local_epochs)
    return learner


def simulated(
    sigma: float, rate: float, steps: int, canaries: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and coins of canaries that attain the guarantee: the log-likelihood ratios of the
    dominating pair.

    A step shows N(±1, σ²) of a sampled canary, + if it is joined, and N(0, σ²) of others
    (:func:`feddep.privacy.dpsgd_accounting.edge_level`).
    """
    joined = rng.random(canaries) < 0.5
    scores = np.zeros(canaries)
    for _ in range(steps):
        sampled = rng.random(canaries) < rate
        seen = np.where(joined, 1.0, -1.0) * sampled + sigma * rng.normal(size=canaries)
        with np.errstate(divide="ignore"):
            ratios = [
                np.logaddexp(np.log1p(-rate), np.log(rate) + (sign * seen - 0.5) / sigma**2)
                for sign in (1, -1)
            ]
        scores += ratios[0] - ratios[1]
    return scores, joined
