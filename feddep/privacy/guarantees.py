"""The guarantees of a benchmark's clients, all in one form: of neighbour sampling, published and exact, and of DP-SGD.

A framework that draws neighbours for its mini-batches has the guarantee of the sampling, with or without noise.  DP-SGD has that
of its noise besides.  The two are not about the same observer: the first is about who sees the drawn neighbours, the second about
who sees all weights that a client sends.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from feddep.graph import Graph
from feddep.partition import Partition
from feddep.privacy.accountant import Account, Guarantee, Terms, account
from feddep.privacy.clients import Facts, facts
from feddep.privacy.noisy_training import Edge, Sampling, Spending, Trained, spent, trained
from feddep.privacy.profile import exact
from feddep.splits import Split

DELTA = 1e-5
"""δ of DP-SGD, and the slack δ' of the composition theorem: below one over the number of edges of every client of the papers."""


@dataclass(frozen=True)
class Line:
    """One guarantee for one client.

    Attributes:
        client: number of the client.
        mechanism: ``sampling`` of neighbours, or ``dpsgd``.
        hidden: of sampling, an entry in the list of the client's ``worst node`` or of its ``median node``, the one of median
            degree; of DP-SGD, an ``example`` or an ``edge``.
        accounting: ``published`` (Theorem 3.1, its composition as in the theorem it cites) or ``exact``; ``rdp`` or ``pld``.
        framework: whose noise it is; empty for sampling, which is that of every framework.
        sigma: noise multiplier σ.
        bound: on the edge level, ``trees`` or ``simple``, see :data:`feddep.privacy.noisy_training.Bound`; else empty.
        degree: of sampling, the number of neighbours D of that node; of the worst node by the exact guarantee none is named, as
            a list that loses and one that gains a neighbour are compared.
        roots: on the edge level, the number of training nodes k whose trees may depend on an edge.
        rate: of DP-SGD, probability q that a training node is in a batch.
        times: number of samplings or steps.
        one: the guarantee of one of them; none if there is no ε.
        all: the guarantee of all together.
    """

    client: int | None
    mechanism: Literal["sampling", "dpsgd"]
    hidden: str
    accounting: str
    one: Guarantee | None
    all: Guarantee | None
    times: int
    framework: str = ""
    bound: str = ""
    sigma: float | None = None
    degree: int | None = None
    roots: int | None = None
    rate: float | None = None


@dataclass(frozen=True)
class Training:
    """How classifiers are trained, as far as it matters here; the fields of :class:`feddep.settings.Setting`."""

    batch_size: int
    fanout: int
    layers: int
    rounds: int
    local_epochs: int

    @classmethod
    def of(cls, setting: Mapping[str, Any]) -> "Training":
        """Those of a setting's entry in the configuration."""
        return cls(*(setting[name] for name in cls.__dataclass_fields__))

    @property
    def epochs(self) -> int:
        """In all rounds together."""
        return self.rounds * self.local_epochs


def measure(graph: Graph, partition: Partition, split: Split, training: Training, noises: Mapping[str, float]) -> Iterator[Line]:
    """All guarantees of each client.

    Args:
        graph: the global graph.
        partition: which client holds which node.
        split: whose training nodes count.
        training: how classifiers are trained.
        noises: σ of each framework that trains by DP-SGD.

    Raises:
        PrivacyError: if graph, partition and split do not belong together.
    """
    terms = Terms(training.fanout, training.layers, training.epochs, slack=DELTA)
    for found in facts(graph, partition, terms):
        yield from _of_sampling(found)
    for client in trained(graph, partition, split, training.layers, training.fanout) if noises else []:
        sampling = Sampling.of_training(client.training, training.batch_size, training.epochs)
        hidden = (None, client.edge(sampling.rate), Edge(client.roots))
        for framework, sigma in noises.items():
            for edge in hidden:
                yield from _of_noise(client, sampling, framework, spent(sigma, sampling, DELTA, edge))


def _of_sampling(found: Facts) -> Iterator[Line]:
    terms, times = found.terms, found.terms.samplings
    # the lower one of two
    median = int(np.searchsorted(np.cumsum(found.degree_counts), found.nodes / 2))
    of_median = [exact(shorter, terms.fanout) for shorter in (max(median - 1, 0), median)]  # a neighbour less, one more
    worse = min(of_median, key=lambda guarantee: guarantee.log_rest)
    theorem = account(median, terms) if median else None
    yield _published(found, "worst node", found.least_degree, found.published)
    yield Line(found.client, "sampling", "worst node", "exact", found.one, found.all, times)
    yield _published(found, "median node", median, theorem)
    yield Line(
        found.client, "sampling", "median node", "exact", worse, Guarantee(0.0, times * worse.log_rest), times, degree=median
    )


def _published(found: Facts, hidden: str, degree: int, theorem: Account | None) -> Line:
    one, composed = (None, None) if theorem is None else (theorem.one, theorem.composed)
    return Line(found.client, "sampling", hidden, "published", one, composed, found.terms.samplings, degree=degree)


def _of_noise(client: Trained, sampling: Sampling, framework: str, spending: Spending) -> Iterator[Line]:
    for accounting in ("rdp", "pld"):
        one, all_ = (Guarantee(getattr(each, accounting), math.log1p(-DELTA)) for each in (spending.step, spending.training))
        yield Line(
            client.client,
            "dpsgd",
            spending.level,
            accounting,
            one,
            all_,
            sampling.steps,
            framework=framework,
            bound=spending.bound or "",
            sigma=spending.sigma,
            roots=spending.roots,
            rate=sampling.rate,
        )


def badness(line: Line) -> tuple[bool, float, float, float]:
    """Orders lines by how little they promise: those that promise nothing last, else by δ of one, then by ε and δ of all."""
    if line.one is None or line.all is None:
        return True, 0.0, 0.0, 0.0
    return False, -line.one.log_rest, line.all.epsilon, -line.all.log_rest
