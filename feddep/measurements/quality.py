"""How good is what DGen generates?  Its embeddings and counts beside predictions that need no training.

A node v of an impaired subgraph misses n_v neighbours, whose prototypes z'_u are known.  What a generator should give the
classifier is their mean t_v.  Beside DGen's z̄_v stand three baselines:

* ``zero``: nothing, what a classifier without mending has;
* ``mean prototype``: the mean of all the client's targets, the same for every node;
* ``own prototype``: z'_v, as if neighbours were like the node itself.

They are compared on the nodes that DGen was trained on, which favours it, and on nodes that miss others, hidden anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from feddep.experiment.plan import Run
from feddep.graph.impairing import Impaired, impair
from feddep.measurements import Tables
from feddep.methods.feddep import FedDEPParameters, mending
from feddep.methods.feddep.generation import Generator
from feddep.methods.framework import StepResult
from feddep.methods.shared.impairing_clients import impair_client
from feddep.nn.dgen import DGen
from feddep.nn.sparse import graph_matrices
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import framework_title
from feddep.training.task import Task
from feddep.utils import seeding

HIDDEN = ("as in training", "anew")
"""Which nodes are hidden when predictions are compared."""
_CELL = ["setting", "dataset", "framework", "clients", "hidden", "guess"]
_EXPLAINED = {"DGen": "DGen", "zero": "zero", "own prototype": "own"}
"""The predictions on the page, and what they are called there."""

_NOTES = """\
A generator learns on subgraphs whose nodes are partly hidden, to give a node v the mean prototype t_v of its hidden neighbours.
*Explained* is 1 − Σ‖guess − t_v‖² / Σ‖mean − t_v‖² over the nodes v that miss a neighbour, where *mean* is the mean prototype of
the client, a guess that is the same for all nodes: above 0 is better than that, 1 is perfect. *Zero* is to generate nothing;
*own* takes v's own prototype, as if neighbours were like the node. *Generated*: share of all nodes for which DGen generates
anything; *silent*: share of the clients in which it does so for none. *Count*: mean of |ñ_v − n_v| for the number of missing
neighbours, beside that of their mean number.

Nodes are hidden anew, other than those that DGen was trained on. Means over clients and seeds; ± sample standard deviation over
seeds.
"""


@dataclass(frozen=True)
class Prediction:
    """A prediction of what the nodes of an impaired subgraph miss.

    Attributes:
        embeddings: of t_v, shape (n, d_z).
        count: of n_v, shape (n,).
    """

    embeddings: Tensor
    count: Tensor


def measure(run: Run, task: Task, parameters: FedDEPParameters, results: Mapping[str, StepResult]) -> Tables:
    """Train every client's DGen as FedDEP does, and compare.

    Returns:
        ``quality``: one row a client, a choice of hidden nodes and a prediction: client, hidden, guess (the prediction);
        nodes: how many miss a neighbour; squared_error: mean of ‖prediction − t_v‖² over them; explained: 1 − squared_error /
        that of the mean prototype; generated: share of all nodes with a prediction other than zero; count_error: mean of
        |ñ_v − n_v| over all nodes.
    """
    shared, targets = (results["prototypes"].of_clients(name) for name in ("prototypes", "targets"))
    rows = []
    for i, client in enumerate(task.subgraphs()):
        impaired = impair_client(task, parameters, i, client)
        dgen = train_dgen(task, parameters, i, impaired, targets[i], shared)
        rng = seeding.generator(task.seed, f"client{i}", "impairing anew")
        anew = impair(*client, parameters.hidden_share, parameters.hidden_from, rng)
        for hidden, each in zip(HIDDEN, (impaired, anew), strict=True):
            predictions = predict(dgen, each, targets[i], parameters.bernoulli_rate, task, f"client{i}")
            rows += [{"client": i, "hidden": hidden, **row} for row in compare(predictions, each, targets[i])]
    return {"quality": rows}


def train_dgen(
    task: Task, parameters: FedDEPParameters, number: int, impaired: Impaired, targets: Tensor, shared: list[Tensor]
) -> DGen:
    """The DGen that :func:`feddep.methods.feddep.mending.mend` trains for a client: same weights, same draws."""
    dgen, name = mending.new_dgen(task, parameters, number), f"client{number}"
    split = task.subgraphs()[number][1]
    generator = Generator(dgen, parameters, task.seed, name, task.device)
    search = mending.nearest_of_others(shared, number)
    generator.train(mending.new_classifier(task, parameters, name), impaired, split, targets, search)
    return dgen.eval()


@torch.no_grad()
def predict(dgen: DGen, impaired: Impaired, targets: Tensor, rate: float, task: Task, name: str) -> dict[str, Prediction]:
    """DGen's prediction and the baselines; a mean over generated embeddings, as the paper has it."""
    graph, device = impaired.graph, task.device
    draws = seeding.torch_generator(task.seed, name, "quality", device=device)
    generated = dgen(*graph_matrices(graph, device), rate, draws)
    own = targets[torch.from_numpy(impaired.kept).to(device)]
    missing = torch.from_numpy(impaired.missing).to(device, torch.float32)
    usual = missing.mean().expand(len(own))
    return {
        "DGen": Prediction(generated.mean("generated"), generated.count),
        "zero": Prediction(torch.zeros_like(own), torch.zeros_like(missing)),
        "mean prototype": Prediction(targets.mean(dim=0).expand_as(own), usual),
        "own prototype": Prediction(own, usual),
    }


def compare(predictions: Mapping[str, Prediction], impaired: Impaired, targets: Tensor) -> list[dict[str, Any]]:
    """Rows of :func:`measure` without client and hidden."""
    missing = torch.from_numpy(impaired.missing).to(targets.device)
    lacking = missing > 0
    truth = true_means(impaired, targets)[lacking]
    errors = {
        name: float((each.embeddings[lacking] - truth).square().sum(dim=1).mean()) if len(truth) else np.nan
        for name, each in predictions.items()
    }
    usual = errors["mean prototype"]
    return [
        {
            "guess": name,
            "nodes": int(lacking.sum()),
            "squared_error": errors[name],
            "explained": 1 - errors[name] / usual if usual > 0 else np.nan,
            "generated": float(each.embeddings.any(dim=1).float().mean()),
            "count_error": float((each.count - missing).abs().mean()),
        }
        for name, each in predictions.items()
    ]


def true_means(impaired: Impaired, targets: Tensor) -> Tensor:
    """t_v = mean {z'_u : u ∈ N̄_i(v)}, shape (n, d_z); zero where nothing is missing."""
    v, u = torch.from_numpy(impaired.pairs).to(targets.device).unbind(dim=1)
    sums = targets.new_zeros(len(impaired.kept), targets.shape[1]).index_add_(0, v, targets[u])
    return sums / torch.from_numpy(impaired.missing).to(targets.device).clamp(min=1).unsqueeze(1)


def page(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """tables/quality.csv and tables/quality.md."""
    summary = summarise(tables["quality"])
    return {"tables/quality.csv": summary, "tables/quality.md": markdown(summary)}


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a setting, dataset, framework, number of clients, choice of hidden nodes and prediction.

    Returns:
        seeds; explained_mean, explained_std; generated; silent, the share of clients with nothing generated; count_error.  First
        the mean over clients of each seed, then over seeds.  Datasets in the papers' order.
    """
    rows = rows.assign(silent=(rows["generated"] == 0).astype(float))
    values = ["explained", "generated", "silent", "count_error"]
    seeds = rows.groupby([*_CELL, "seed"], sort=False)[values].mean().reset_index()
    summary = seeds.groupby(_CELL, sort=False).agg(
        seeds=("seed", "size"),
        explained_mean=("explained", "mean"),
        explained_std=("explained", "std"),
        generated=("generated", "mean"),
        silent=("silent", "mean"),
        count_error=("count_error", "mean"),
    )
    return in_paper_order(summary.reset_index(), ["dataset"])


def markdown(summary: pd.DataFrame) -> str:
    """A page with a table a dataset; a line a number of clients and framework."""
    anew = summary[summary["hidden"] == "anew"]
    return f"# Generated neighbours beside guesses\n\n{_NOTES}\n{md.sections(anew, _block)}"


def _block(block: pd.DataFrame) -> str:
    header = ["M", "", *(f"explained: {title}" for title in _EXPLAINED.values())]
    header += ["generated", "silent", "count: DGen", "count: mean"]
    lines = []
    for (clients, framework), rows in block.groupby(["clients", "framework"], sort=False):
        of = {row["guess"]: row for row in records(rows)}
        explained = [md.plus_minus(of[name]["explained_mean"], of[name]["explained_std"]) for name in _EXPLAINED]
        shares = [f"{of['DGen'][share]:.1%}" for share in ("generated", "silent")]
        counts = [f"{of[name]['count_error']:.3f}" for name in ("DGen", "mean prototype")]
        lines.append([str(clients), framework_title(str(framework)), *explained, *shares, *counts])
    return md.table(header, lines)
