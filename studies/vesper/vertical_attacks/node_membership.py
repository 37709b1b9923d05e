"""Node membership inference on vertical training: which nodes was a model trained on? (VESPER,
Appendix C.7)

The setting is "train on subgraph, test on full graph" of Olatunji, Nejdl and Khosla (2021,
"Membership inference attack on graph neural networks").  A model is trained on the subgraph that a
random half of the nodes induces, with the labels of all of them. Then the adversary asks for class
posteriors of all nodes on the full graph, and tells those inside the training subgraph (members)
from those outside.  It has two scores:

* *shadow*: the adversary holds a shadow dataset, trains a shadow model with the same
  hyperparameters on one half of it, asks it for the posteriors of both halves on the whole of the
  shadow dataset, and trains an attack model, a perceptron with three linear maps, to tell the
  halves apart.  The attack model reads the probabilities of the classes in descending order, so
  that it has nothing to do with which class is which.
* *entropy*: minus the Shannon entropy of the posterior; nodes that the model is sure of count as
members.
"""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.special import entr
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from feddep.graph.graph import Graph
from feddep.graph.split import Split
from feddep.methods.method import Method
from feddep.methods.vesper.split_training import ALL, TEST, VALIDATION, SplitTraining, new_encoder
from feddep.training.task import Task
from feddep.utils import seeding
from studies.privacy.privacy_audit.attack_statistics import auc

SHADOW_NODES = 1000
"""Most nodes of a class in the shadow dataset; the paper's number."""
_WIDTHS = (64, 32)
"""Widths of the attack model's hidden layers (ours)."""


def measure(method: Method, task: Task, parameters: Any) -> dict[str, float]:
    """Attack a method's model, trained with the noise that the parameters say.

    Returns:
        membership_auc: AUC of the attack with a shadow model, over all nodes.
        entropy_auc: AUC of the entropy.
        accuracy_inside, accuracy_outside: of the attacked model, on members and on all others.
    """
    graph, rng = task.graph, seeding.generator(task.seed, "node membership", "nodes")
    order = rng.permutation(graph.num_nodes)
    inside, outside = (np.sort(part) for part in np.array_split(order, 2))
    target = train_inside(method, task, parameters, graph.subgraph(inside), "target")
    posteriors = np.concatenate(query(target, graph, inside, outside))
    nodes = np.concatenate([inside, outside])
    members = np.repeat([True, False], [len(inside), len(outside)])

    held = graph.subgraph(shadow_nodes(graph.labels, inside, rng))
    half, rest = (np.sort(part) for part in np.array_split(rng.permutation(held.num_nodes), 2))
    shadow = train_inside(method, task, parameters, held.subgraph(half), "shadow")
    scores = attack_scores(*query(shadow, held, half, rest), posteriors, task.seed)

    correct = posteriors.argmax(axis=1) == graph.labels[nodes]
    return {
        "membership_auc": auc(scores, members),
        "entropy_auc": auc(-entr(posteriors).sum(axis=1), members),
        "accuracy_inside": float(correct[members].mean()),
        "accuracy_outside": float(correct[~members].mean()),
    }


def shadow_nodes(labels: np.ndarray, inside: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The nodes of the shadow dataset, ascending: of each class :data:`SHADOW_NODES`, but no more
    than half of its nodes.

    Those outside the target's training subgraph come first, so that there are others among them
    only where these do not suffice.
    """
    order = rng.permutation(len(labels))
    order = np.concatenate([order[~np.isin(order, inside)], order[np.isin(order, inside)]])
    chosen = []
    for label in range(labels.max() + 1):
        of_class = order[labels[order] == label]
        chosen.append(of_class[: min(SHADOW_NODES, len(of_class) // 2)])
    return np.sort(np.concatenate(chosen))


def train_inside(
    method: Method, task: Task, parameters: Any, subgraph: Graph, name: str
) -> SplitTraining:
    """Train on all nodes of a subgraph, as the method does it."""
    nodes = np.arange(subgraph.num_nodes)
    # Validated on training nodes, and not chosen by that: the last round counts.
    split = Split(nodes, *np.array_split(nodes, 2))
    seed = seeding.derive_seed(task.seed, "node membership", name)
    shown: list[SplitTraining] = []
    name = f"{task.name}: {name}"
    task = replace(task, name=name, graph=subgraph, split=split, seed=seed)
    method.run(
        replace(task, inspectors=(lambda what, training: shown.append(training),)), parameters
    )
    return shown[-1]  # one without a graph may come before


@torch.no_grad()
def query(
    target: SplitTraining, graph: Graph, *groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Class posteriors of two disjoint groups of nodes, by message passing with noise on a graph;
    shape (nodes, C) each.

    Both groups are asked for in one release, as validation and test nodes are.
    """
    seed = seeding.derive_seed(target.task.seed, "query")  # noise that was not drawn in training
    asked = replace(
        target.task,
        graph=graph,
        split=Split(np.arange(graph.num_nodes), *groups),
        seed=seed,
        inspectors=(),
    )
    parties = SplitTraining(asked, target.protocol, new_encoder(asked, target.protocol.parameters))
    parties.model.load_state_dict(target.model.state_dict())
    if target.protocol.one_shot:
        (received,) = parties.party_a.release({ALL: np.arange(graph.num_nodes)})
        rows = [received["values"][torch.from_numpy(nodes).to(asked.device)] for nodes in groups]
    else:
        released = parties.party_a.release(dict(zip((VALIDATION, TEST), groups, strict=True)))
        rows = [received["values"] for received in released]
    first, second = (
        parties.model["decoder"](each).double().softmax(dim=1).cpu().numpy() for each in rows
    )
    return first, second


def attack_scores(
    members: np.ndarray, others: np.ndarray, attacked: np.ndarray, seed: int
) -> np.ndarray:
    """How likely nodes with the posteriors ``attacked``, shape (N, C), are members, by an attack
    model; shape (N,).

    It learns from a shadow model's posteriors for nodes that it was trained on and for others,
    shape (nodes, C) each.
    """
    known = np.concatenate([members, others])
    truth = np.repeat([True, False], [len(members), len(others)])
    state = seeding.derive_seed(seed, "node membership", "attack model") % 2**32
    model = make_pipeline(
        StandardScaler(), MLPClassifier(_WIDTHS, max_iter=100, random_state=state)
    )
    # Sums are then added in one order, on every machine.
    with (
        warnings.catch_warnings(),
        threadpool_limits(1),
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(-np.sort(-known, axis=1), truth)
        scores: np.ndarray = model.predict_proba(-np.sort(-attacked, axis=1))[:, 1]
    return scores
