"""All guarantees of a benchmark's clients in one form: of neighbour sampling, published and exact, and of DP-SGD.

A method that draws neighbours for its mini-batches has the guarantee of the sampling, with or without noise; DP-SGD adds that
of its noise.  The two are about different observers: the first about one who sees the drawn neighbours, the second about one who
sees all weights that a client sends.

Those of DP-SGD for edges are per instance, as they are read off the private graph, and are of the training with its inputs given:
no method here has a finite ε for edges (docs/privacy.md).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.privacy.accountant import Guarantee, PublishedGuarantee, SamplingParameters, published_guarantee
from feddep.privacy.dpsgd_guarantees import DpsgdGuarantee, PoissonSampling, TreeChanges, client_trees, dpsgd_guarantee
from feddep.privacy.profile import exact_at_node
from feddep.privacy.sampling_guarantees import SamplingGuarantee, sampling_guarantees
from feddep.training.config import TrainingConfig

DELTA = 1e-5
"""δ of DP-SGD, and the slack δ' of the composition theorem: below one over the number of edges of every client of the papers."""


@dataclass(frozen=True)
class ClientGuarantee:
    """One guarantee for one client.

    Attributes:
        client: number of the client.
        mechanism: ``sampling`` of neighbours, or ``dpsgd``.
        hidden: of sampling, an entry in the list of the client's ``worst node`` or of its ``median node``, the one of median
            degree; of DP-SGD, an ``example`` or an ``edge``.
        accounting: ``published`` (Theorem 3.1, its composition as in the theorem it cites) or ``exact``; ``rdp`` or ``pld``.
        one: the guarantee of one sampling or step; none if there is no ε.
        all: the guarantee of all together.
        times: number of samplings or steps.
        method: whose noise it is; empty for sampling, which is that of every method.
        bound: on the edge level, ``trees`` or ``simple``, see :class:`feddep.privacy.dpsgd_guarantees.TreeChanges`; else empty.
        sigma: noise multiplier σ.
        degree: of sampling, the number of neighbours D of that node; of the worst node by the exact guarantee none is named, as
            a list that loses and one that gains a neighbour are compared.
        roots: on the edge level, the number of training nodes k whose trees may depend on an edge.
        rate: of DP-SGD, probability q that a training node is in a batch.
    """

    client: int | None
    mechanism: Literal["sampling", "dpsgd"]
    hidden: str
    accounting: str
    one: Guarantee | None
    all: Guarantee | None
    times: int
    method: str = ""
    bound: str = ""
    sigma: float | None = None
    degree: int | None = None
    roots: int | None = None
    rate: float | None = None


def client_guarantees(
    graph: Graph, partition: Partition, split: Split, setting: TrainingConfig, noises: Mapping[str, float]
) -> Iterator[ClientGuarantee]:
    """All guarantees of each client.

    Args:
        graph: the global graph.
        partition: which client holds which node.
        split: whose training nodes count.
        setting: how classifiers are trained.
        noises: σ of each method that trains by DP-SGD.

    Raises:
        PrivacyError: if graph, partition and split do not belong together.
    """
    epochs = setting.rounds * setting.local_epochs
    parameters = SamplingParameters(setting.fanout, setting.layers, epochs, slack=DELTA)
    for found in sampling_guarantees(graph, partition, parameters):
        yield from _of_sampling(found)
    for client in client_trees(graph, partition, split, setting.layers, setting.fanout) if noises else []:
        sampling = PoissonSampling.of_training(client.training, setting.batch_size, epochs)
        levels = (None, client.worst_edge(sampling.rate), TreeChanges.simple(client.roots, sampling.rate))
        for method, sigma in noises.items():
            for edge in levels:
                yield from _of_noise(client.client, method, sampling, dpsgd_guarantee(sigma, sampling, DELTA, edge))


def _of_sampling(found: SamplingGuarantee) -> Iterator[ClientGuarantee]:
    parameters, times, median = found.parameters, found.parameters.samplings, found.median_degree

    def published(node: str, degree: int, theorem: PublishedGuarantee | None) -> ClientGuarantee:
        one, composed = (None, None) if theorem is None else (theorem.one, theorem.composed)
        return ClientGuarantee(found.client, "sampling", node, "published", one, composed, times, degree=degree)

    yield published("worst node", found.least_degree, found.published)
    yield ClientGuarantee(found.client, "sampling", "worst node", "exact", found.one, found.all, times)
    yield published("median node", median, published_guarantee(median, parameters) if median else None)
    one, composed = (exact_at_node(median, parameters.fanout, count) for count in (1, times))
    yield ClientGuarantee(found.client, "sampling", "median node", "exact", one, composed, times, degree=median)


def _of_noise(client: int | None, method: str, sampling: PoissonSampling, found: DpsgdGuarantee) -> Iterator[ClientGuarantee]:
    of_noise: dict[str, Any] = {"method": method, "bound": found.bound or "", "sigma": found.sigma, "roots": found.roots}
    for accounting in ("rdp", "pld"):
        one, composed = (Guarantee(getattr(each, accounting), math.log1p(-DELTA)) for each in (found.one_step, found.all_steps))
        yield ClientGuarantee(
            client, "dpsgd", found.level, accounting, one, composed, sampling.steps, **of_noise, rate=sampling.rate
        )


def weakness(row: ClientGuarantee) -> tuple[bool, float, float, float]:
    """Sort key, weakest guarantee last: those without ε last, else by δ of one, then by ε and δ of all."""
    if row.one is None or row.all is None:
        return True, 0.0, 0.0, 0.0
    return False, -row.one.log_rest, row.all.epsilon, -row.all.log_rest
