"""How good is what DGen generates?  Its embeddings and counts beside predictions that need no
training.

A node v of an impaired subgraph misses n_v neighbours, whose prototypes z'_u are known.  What a
generator should give the classifier is their mean t_v.  Beside DGen's z̄_v stand three baselines:

* ``zero``: nothing, what a classifier without mending has;
* ``mean prototype``: the mean of all the client's targets, the same for every node, with the mean
    number of missing neighbours;
* ``own prototype``: z'_v, as if neighbours were like the node itself, with as many as its degree
    lets expect;

and ``least loss``: what attains the least loss L^n_i on the very nodes that are compared, see
    :func:`least_loss`.

They are compared on the nodes that DGen was trained on, which favours it, and where nodes are
hidden anew on those that miss none of the neighbours that DGen was trained to generate for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep.graph.impairing import Impaired, impair
from feddep.methods.feddep import FedDEPParameters, mending
from feddep.methods.feddep.dgen import DGen
from feddep.methods.feddep.generation import Generator
from feddep.methods.shared.impairing_clients import impair_client
from feddep.nn.sparse import graph_matrices
from feddep.training.task import Task
from feddep.utils import seeding
from studies.measuring import Case, Tables

HIDDEN = ("as in training", "anew")
"""Which nodes are hidden when predictions are compared."""
_ITERATIONS = 100
"""At most so many alternations lead from a start to a minimum; each lowers the loss, and a few are
enough.
"""


@dataclass(frozen=True)
class Prediction:
    """A prediction of the t_v of an impaired subgraph's nodes, shape (n, d_z), and of their n_v,
    shape (n,).
    """

    embeddings: Tensor
    count: Tensor


def measure(case: Case) -> Tables:
    """Train every client's DGen as FedDEP does, and compare.

    Returns:
        ``quality``: one row a client, a choice of hidden nodes and a prediction: client, hidden,
            guess (the prediction);
        nodes: how many are compared; squared_error: mean of ‖prediction − t_v‖² over them;
        explained: 1 − squared_error / that of the mean prototype; filled: share of them with a
        prediction other than zero; explained_filled and explained_empty: explained over these and
        over the others; generated: share of all nodes with a prediction other than zero;
        count_error
        and count_correlation: mean |ñ_v − n_v| and the correlation of both, over all nodes.
    """
    task, parameters = case.task, case.parameters
    shared, targets = (
        case.step("prototypes").of_clients(name) for name in ("prototypes", "targets")
    )
    rows = []
    for i, client in enumerate(task.subgraphs()):
        impaired = impair_client(task, parameters, i, client)
        dgen = train_dgen(task, parameters, i, impaired, targets[i], shared)
        rng = seeding.generator(task.seed, f"client{i}", "impairing anew")
        anew = impair(*client, parameters.hidden_share, parameters.hidden_from, rng)
        others = [prototypes for j, prototypes in enumerate(shared) if j != i]
        judged = np.ones(len(impaired.kept), dtype=bool), unseen(anew, impaired)
        for hidden, each, which in zip(HIDDEN, (impaired, anew), judged, strict=True):
            predictions = predict(
                dgen, each, targets[i], parameters.bernoulli_rate, task, f"client{i}"
            )
            least = least_loss(
                each, targets[i], others, parameters.intra_weight, parameters.cross_weight
            )
            predictions["least loss"] = Prediction(least, torch.from_numpy(each.missing).to(least))
            rows += [
                {"client": i, "hidden": hidden, **row}
                for row in compare(predictions, each, targets[i], which)
            ]
    return {"quality": rows}


def train_dgen(
    task: Task,
    parameters: FedDEPParameters,
    number: int,
    impaired: Impaired,
    targets: Tensor,
    shared: list[Tensor],
) -> DGen:
    """The DGen that :func:`feddep.methods.feddep.mending.mend` trains for a client: same weights,
    same draws.
    """
    dgen, name = mending.new_dgen(task, parameters, number), f"client{number}"
    classifier = mending.new_classifier(task, parameters, name)
    search = mending.nearest_of_others(shared, number)
    generator = Generator(dgen, parameters, task.seed, name, task.device)
    generator.train(classifier, impaired, task.subgraphs()[number][1], targets, search)
    return dgen.eval()


def unseen(anew: Impaired, trained: Impaired) -> np.ndarray:
    """Which remaining nodes of ``anew`` miss no neighbour that they miss in ``trained``, of the
    same graph; bool, shape (n,).
    """

    def ids(impaired: Impaired) -> np.ndarray:
        v, u = impaired.pairs.T
        return impaired.kept[v] * (len(impaired.kept) + len(impaired.hidden)) + u

    found = np.ones(len(anew.kept), dtype=bool)
    found[anew.pairs[np.isin(ids(anew), ids(trained)), 0]] = False
    return found


@torch.no_grad()
def least_loss(
    impaired: Impaired, targets: Tensor, others: Sequence[Tensor], intra: float, cross: float
) -> Tensor:
    """What attains the least generator's loss (:mod:`feddep.methods.feddep.generation`) for nodes
    that miss a neighbour.

    The loss is a sum over nodes v and slots p, so each z̃^p_v can be chosen alone, and all slots of
    v alike: it minimises f_v(z) = β^f min_u ‖z − z'_u‖² + β^n Σ_j min_{z' ∈ Z'_j} ‖z − z'‖².  With
    the nearest target of each term given, this is a sum of squares whose minimum is the weighted
    mean of the targets.  The hidden neighbours u have one of few prototypes c, so it is enough to
    minimise f with c in place of z'_u, once for each c, and to take the best of v's.  That is done
    by turns, nearest targets and their weighted mean, from every prototype of every client as a
    start.  Each turn lowers the loss, so what is found is a local minimum, and the best of many;
    where β^n is 0 it is the minimum, z = c.  Terms L^c_i and L₁^S are left out: the second is 0
    with the true number, and the first is not of z̃ alone.

    Args:
        impaired: an impaired subgraph.
        targets: z'_u of all nodes of the client's subgraph, shape (N, d_z).
        others: the prototypes Z'_j of every other client.
        intra, cross: β^f and β^n.

    Returns:
        z̄_v, the mean over v's hidden neighbours whose prototypes attain the least; zero where
        nothing is missing; shape (n, d_z).
    """
    own, of_node = targets.double().unique(dim=0, return_inverse=True)
    candidates = [each.double() for each in others]
    found = [
        least_with(prototype, torch.cat([own, *candidates]), candidates, intra, cross)
        for prototype in own
    ]
    points = torch.stack([point for point, _ in found])
    losses = torch.stack([loss for _, loss in found])
    v, u = torch.from_numpy(impaired.pairs).to(targets.device).unbind(dim=1)
    of_pair = losses[of_node[u]]
    least = losses.new_full((len(impaired.kept),), torch.inf).scatter_reduce(0, v, of_pair, "amin")
    best = of_pair <= least[v] * (1 + 1e-9)
    sums = points.new_zeros(len(impaired.kept), points.shape[1]).index_add_(
        0, v[best], points[of_node[u[best]]]
    )
    return (sums / torch.bincount(v[best], minlength=len(sums)).clamp(min=1).unsqueeze(1)).to(
        targets.dtype
    )


def least_with(
    own: Tensor, starts: Tensor, others: Sequence[Tensor], intra: float, cross: float
) -> tuple[Tensor, Tensor]:
    """The lowest that is found of β^f ‖z − own‖² + β^n Σ_j min_{z' ∈ Z'_j} ‖z − z'‖²: where, shape
    (d_z,), and how low.
    """
    points = torch.cat([own.unsqueeze(0), starts])

    def nearest(points: Tensor) -> list[Tensor]:
        return [
            each[
                torch.cdist(points, each, compute_mode="donot_use_mm_for_euclid_dist").argmin(dim=1)
            ]
            for each in others
        ]

    total = intra + cross * len(others)
    for _ in range(_ITERATIONS if total else 0):
        moved = (intra * own + cross * sum(nearest(points), torch.zeros_like(points))) / total
        if torch.equal(moved, points):
            break
        points = moved
    losses = intra * (points - own).square().sum(dim=1)
    for found in nearest(points):
        losses = losses + cross * (points - found).square().sum(dim=1)
    best = int(losses.argmin())
    return points[best], losses[best]


@torch.no_grad()
def predict(
    dgen: DGen, impaired: Impaired, targets: Tensor, rate: float, task: Task, name: str
) -> dict[str, Prediction]:
    """DGen's prediction and the baselines; a mean over generated embeddings, as the paper has
    it.
    """
    graph, device = impaired.graph, task.device
    draws = seeding.torch_generator(task.seed, name, "quality", device=device)
    generated = dgen(*graph_matrices(graph, device), rate, draws)
    own = targets[torch.from_numpy(impaired.kept).to(device)]
    missing = torch.from_numpy(impaired.missing).to(device, torch.float32)
    usual = missing.mean().expand(len(own))
    left = torch.from_numpy(graph.degrees).to(device, torch.float32)
    return {
        "DGen": Prediction(generated.mean("generated"), generated.count),
        "zero": Prediction(torch.zeros_like(own), torch.zeros_like(missing)),
        "mean prototype": Prediction(targets.mean(dim=0).expand_as(own), usual),
        "own prototype": Prediction(own, left * (len(impaired.hidden) / len(impaired.kept))),
    }


def compare(
    predictions: Mapping[str, Prediction], impaired: Impaired, targets: Tensor, judged: np.ndarray
) -> list[dict[str, Any]]:
    """Rows of :func:`measure` without client and hidden; of the nodes that miss a neighbour, those
    ``judged`` are compared.
    """
    missing = torch.from_numpy(impaired.missing).to(targets.device)
    compared = (missing > 0) & torch.from_numpy(judged).to(targets.device)
    truth = true_means(impaired, targets)[compared]
    errors = {
        name: (each.embeddings[compared] - truth).square().sum(dim=1).double()
        for name, each in predictions.items()
    }
    usual = errors["mean prototype"]

    def explained(error: Tensor, over: Tensor) -> float:
        return float(1 - error[over].sum() / usual[over].sum()) if usual[over].sum() > 0 else np.nan

    rows = []
    for name, each in predictions.items():
        filled, error = each.embeddings[compared].any(dim=1), errors[name]
        row = {"guess": name, "nodes": len(truth), "squared_error": float(error.mean())}
        choices = {
            "explained": torch.ones_like(filled),
            "explained_filled": filled,
            "explained_empty": ~filled,
        }
        row |= {column: explained(error, over) for column, over in choices.items()}
        row |= {
            "filled": float(filled.double().mean()),
            "generated": float(each.embeddings.any(dim=1).float().mean()),
        }
        row["count_error"] = float((each.count - missing).abs().mean())
        rows.append({**row, "count_correlation": correlation(each.count, missing)})
    return rows


def correlation(one: Tensor, other: Tensor) -> float:
    """Of two vectors; NaN where one of them is constant."""
    both = torch.stack([one.double(), other.double()])
    spread = both.std(dim=1, correction=0)
    return float(torch.corrcoef(both)[0, 1]) if (spread > 1e-9).all() else np.nan


def true_means(impaired: Impaired, targets: Tensor) -> Tensor:
    """t_v = mean {z'_u : u ∈ N̄_i(v)}, shape (n, d_z); zero where nothing is missing."""
    v, u = torch.from_numpy(impaired.pairs).to(targets.device).unbind(dim=1)
    sums = targets.new_zeros(len(impaired.kept), targets.shape[1]).index_add_(0, v, targets[u])
    return sums / torch.from_numpy(impaired.missing).to(targets.device).clamp(min=1).unsqueeze(1)
