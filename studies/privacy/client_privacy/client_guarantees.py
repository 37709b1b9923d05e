"""The guarantees of the clients of a divided graph in one form: of neighbour sampling, published
and exact, and of DP-SGD.

Sampling is about who sees the drawn neighbours, DP-SGD about who sees all weights that a client
sends.  The ε of DP-SGD for edges are per instance, as they are read off the private graph, and of
the training with its inputs given (docs/results/privacy.md).
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.privacy.accountant import Guarantee, SamplingParameters, published_guarantee
from feddep.privacy.dpsgd_accounting import binomial_changes, one_and_all_steps, poisson_sampling
from feddep.privacy.profile import exact_at_node
from studies.privacy.client_privacy.changed_trees import most_changed, tree_changes


@dataclass(frozen=True)
class ClientGuarantee:
    """One guarantee for one client.

    Attributes:
        client: number of the client.
        mechanism: ``sampling`` of neighbours, or ``dpsgd``.
        hidden: of sampling, an entry in the list of the client's ``worst node`` or of its ``median
            node``, the one of median degree; of DP-SGD, an ``example`` or an ``edge``.
        accounting: ``published`` (Theorem 3.1, its composition as in the theorem it cites) or
            ``exact``; ``rdp`` or ``pld``.
        one: the guarantee of one sampling or step; none if there is no ε.
        all: the guarantee of all together.
        times: number of samplings or steps.
        method: whose noise it is; empty for sampling, which every method has.
        bound: on the edge level, ``trees``, by how likely the edge changes each tree, or
            ``simple``, by how many it may change.
        sigma: noise multiplier σ.
        degree: of sampling, the number of neighbours D of that node; of the worst node by the exact
            guarantee none is named, as a list that loses and one that gains a neighbour are
            compared.
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


def dpsgd_guarantees(
    clients: Iterable["ClientTrees"],
    batch_size: int,
    epochs: int,
    noises: Mapping[str, float],
    delta: float,
) -> Iterator[ClientGuarantee]:
    """What DP-SGD with the noise σ of each method guarantees each client: for an example, and for
    an edge by both bounds.
    """
    for client in clients:
        rate, steps = poisson_sampling(client.training, batch_size, epochs)
        changes = most_changed(client.changes, rate)
        levels = [("example", "", None), ("edge", "trees", changes)]
        levels.append(("edge", "simple", binomial_changes(len(changes) - 1, rate)))
        for method, sigma in noises.items():
            for hidden, bound, law in levels:
                spent = one_and_all_steps(sigma, rate, steps, delta, law)
                facts: dict[str, Any] = {
                    "method": method,
                    "bound": bound,
                    "sigma": sigma,
                    "rate": rate,
                }
                facts["roots"] = None if law is None else len(law) - 1
                for accounting in ("rdp", "pld"):
                    one, composed = (
                        Guarantee(getattr(each, accounting), math.log1p(-delta)) for each in spent
                    )
                    yield ClientGuarantee(
                        client.client, "dpsgd", hidden, accounting, one, composed, steps, **facts
                    )


def sampling_guarantees(
    graph: Graph, partition: Partition | None, parameters: SamplingParameters
) -> Iterator[ClientGuarantee]:
    """What neighbour sampling guarantees at each client, or in the whole graph if it is not
    divided.
    """
    fanout, times = parameters.fanout, parameters.samplings
    for client, _, part in client_graphs(graph, partition):
        degrees = np.sort(part.degrees)
        median = int(degrees[(len(degrees) - 1) // 2])
        present: list[int] = np.unique(degrees).tolist()
        worst = min(present, key=lambda degree: exact_at_node(degree, fanout).log_rest)
        for node, degree, of_exact in (
            ("worst node", present[0], worst),
            ("median node", median, median),
        ):
            theorem = published_guarantee(degree, parameters) if degree else None
            published = (None, None) if theorem is None else (theorem.one, theorem.composed)
            exact = exact_at_node(of_exact, fanout), exact_at_node(of_exact, fanout, times)
            for accounting, (one, composed) in (("published", published), ("exact", exact)):
                named = None if (node, accounting) == ("worst node", "exact") else degree
                yield ClientGuarantee(
                    client, "sampling", node, accounting, one, composed, times, degree=named
                )


def client_graphs(
    graph: Graph, partition: Partition | None
) -> Iterator[tuple[int | None, np.ndarray, Graph]]:
    """Each client's number, its nodes' ids in ``graph`` and its own graph; or the whole graph once,
    without a number.
    """
    if partition is None:
        yield None, np.arange(graph.num_nodes), graph
        return
    for client in range(partition.num_clients):
        nodes = partition.nodes(client)
        yield client, nodes, graph.subgraph(nodes)


@dataclass(frozen=True, eq=False)
class ClientTrees:
    """A client's training nodes, and how likely its edges change their trees.

    Attributes:
        client: number of the client; none for a graph that is not divided.
        changes: bound on the probability that an edge changes a training node's tree, shape (edges,
            n), see :func:`.changed_trees.tree_changes`.  Below, each edge once more
            for lists with stand-ins for neighbours at other clients, which FedGNN's clients draw
            from.
    """

    client: int | None
    changes: sp.csr_array = field(repr=False)

    @property
    def training(self) -> int:
        """Number n of training nodes."""
        return int(self.changes.shape[1])


def client_trees(
    graph: Graph, partition: Partition | None, split: Split, layers: int, fanout: int
) -> list[ClientTrees]:
    """The trees of each client, or of whoever holds the whole graph.

    Args:
        graph: the graph.
        partition: which client holds which node.
        split: whose training nodes count.
        layers: number of hops L of the trees.
        fanout: number of neighbours d that are drawn from a list.

    Raises:
        PrivacyError: if a count is out of range.
    """
    found = []
    for client, nodes, part in client_graphs(graph, partition):
        roots, elsewhere = split.restrict(nodes).train, graph.degrees[nodes] - part.degrees
        lists = [None, elsewhere] if elsewhere.any() else [None]
        changes = [tree_changes(part, roots, layers, fanout, stand_ins) for stand_ins in lists]
        found.append(ClientTrees(client, sp.csr_array(sp.vstack(changes, format="csr"))))
    return found
