"""How good is what DGen generates?  Its embeddings and counts beside guesses that need no training.

A node v of an impaired subgraph misses n_v neighbours, whose prototypes z'_u are known.  What a generator should give the
classifier is their mean t_v.  Beside DGen's z̄_v stand

* ``zero``: nothing, what a classifier without mending has;
* ``mean prototype``: the mean of all the client's targets, the same for every node;
* ``own prototype``: z'_v, as if neighbours were like the node itself.

They are compared on the nodes that DGen was trained on, which favours it, and on nodes that miss others, hidden anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from feddep import mending, seeding
from feddep.evaluation import mean_adjacency
from feddep.generation import Generator, nearest_in
from feddep.impairing import Impaired, impair
from feddep.nn.dgen import DGen
from feddep.nn.sparse import SparseMatrix
from feddep.problem import Problem
from feddep.steps import Made

HIDDEN = ("as in training", "anew")
"""Which nodes are hidden when guesses are compared."""


@dataclass(frozen=True)
class Guess:
    """A guess at what the nodes of an impaired subgraph miss.

    Attributes:
        embeddings: guess at t_v, shape (n, d_z).
        count: guess at n_v, shape (n,).
    """

    embeddings: Tensor
    count: Tensor


def measure(problem: Problem, parameters: Any, made: Mapping[str, Made]) -> list[dict[str, Any]]:
    """Train every client's DGen as FedDEP does, and compare.

    Args:
        problem: the run.
        parameters: FedDEP's parameters.
        made: the results of ``prototypes``.

    Returns:
        One row a client, a choice of hidden nodes and a guess: client, hidden, guess; nodes: how many miss a neighbour;
        squared_error: mean of ‖guess − t_v‖² over them; explained: 1 − squared_error / that of the mean prototype;
        generated: share of all nodes with a guess other than zero; count_error: mean of |ñ_v − n_v| over all nodes.
    """
    shared, targets = made["prototypes"].of_clients("prototypes"), made["prototypes"].of_clients("targets")
    rows = []
    for i, (graph, split) in enumerate(problem.subgraphs()):
        impaired = mending.impair_client(problem, parameters, i, (graph, split))
        others = [each for j, each in enumerate(shared) if j != i]
        dgen = train_dgen(problem, parameters, i, impaired, targets[i], others)
        rng = seeding.generator(problem.seed, f"client{i}", "impairing anew")
        anew = impair(graph, split, parameters.hidden_share, parameters.hidden_from, rng)
        for hidden, each in zip(HIDDEN, (impaired, anew), strict=True):
            guesses = guesses_of(dgen, each, targets[i], parameters, problem, f"client{i}")
            rows += [{"client": i, "hidden": hidden, **row} for row in compare(guesses, each, targets[i])]
    return rows


def train_dgen(problem: Problem, parameters: Any, number: int, impaired: Impaired, targets: Tensor, others: list[Tensor]) -> DGen:
    """The DGen that :func:`feddep.mending.mend` trains for a client: same weights, same draws."""
    graph, split = problem.subgraphs()[number]
    name, seed, setting = f"client{number}", problem.seed, problem.setting
    dgen = DGen(graph.num_features, parameters.embedding, parameters.max_generated, setting.hidden, setting.dropout)
    dgen.reset_parameters(torch.Generator().manual_seed(seeding.derive_seed(seed, name, "generator", "weights")))
    generator = Generator(dgen, parameters.generation, seed, name, problem.device)
    generator.train(mending.new_classifier(problem, parameters, name), impaired, split, targets, nearest_in(others))
    return dgen.eval()


@torch.no_grad()
def guesses_of(dgen: DGen, impaired: Impaired, targets: Tensor, parameters: Any, problem: Problem, name: str) -> dict[str, Guess]:
    """DGen's guess and the others; a mean over generated embeddings, as the paper has it."""
    graph, device = impaired.graph, problem.device
    matrices = (SparseMatrix.from_scipy(matrix, device) for matrix in (graph.features, mean_adjacency(graph)))
    draws = torch.Generator(device).manual_seed(seeding.derive_seed(problem.seed, name, "quality"))
    generated = dgen(*matrices, parameters.bernoulli_rate, draws)
    own = targets[torch.from_numpy(impaired.kept).to(device)]
    missing = torch.from_numpy(impaired.missing).to(device, torch.float32)
    usual = missing.mean().expand(len(own))
    return {
        "DGen": Guess(generated.mean("generated"), generated.count),
        "zero": Guess(torch.zeros_like(own), torch.zeros_like(missing)),
        "mean prototype": Guess(targets.mean(dim=0).expand_as(own), usual),
        "own prototype": Guess(own, usual),
    }


def compare(guesses: Mapping[str, Guess], impaired: Impaired, targets: Tensor) -> list[dict[str, Any]]:
    """Rows of :func:`measure` without client and hidden."""
    missing = torch.from_numpy(impaired.missing).to(targets.device)
    lacking = missing > 0
    truth = true_means(impaired, targets)[lacking]
    errors = {
        name: float((guess.embeddings[lacking] - truth).square().sum(dim=1).mean()) if len(truth) else np.nan
        for name, guess in guesses.items()
    }
    usual = errors["mean prototype"]
    return [
        {
            "guess": name,
            "nodes": int(lacking.sum()),
            "squared_error": errors[name],
            "explained": 1 - errors[name] / usual if usual > 0 else np.nan,
            "generated": float(guess.embeddings.any(dim=1).float().mean()),
            "count_error": float((guess.count - missing).abs().mean()),
        }
        for name, guess in guesses.items()
    ]


def true_means(impaired: Impaired, targets: Tensor) -> Tensor:
    """t_v = mean {z'_u : u ∈ N̄_i(v)}, shape (n, d_z); zero where nothing is missing."""
    v, u = torch.from_numpy(impaired.pairs).to(targets.device).unbind(dim=1)
    sums = targets.new_zeros(len(impaired.kept), targets.shape[1]).index_add_(0, v, targets[u])
    return sums / torch.from_numpy(impaired.missing).to(targets.device).clamp(min=1).unsqueeze(1)
