"""Edge membership inference: which pairs of a client's nodes are joined, from what the client
sends.

Each client is attacked by a model trained on the others, as if they had colluded.  The baseline is
the same attack without any message; the gain over it is what the messages leak.  A control shows
that edges are what they leak: if the target alone trains on rewired edges, an attack that was
learned on true ones must not gain.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from feddep.graph.graph import Graph
from feddep.methods.fedgsl import fedgsl
from feddep.methods.fedsage import cross_client
from feddep.methods.method import Method
from feddep.methods.shared.cross_edges import cross_edges
from feddep.methods.shared.routing import upward
from feddep.training.task import Task
from feddep.utils import seeding
from feddep.utils.progress import track
from studies.privacy.privacy_audit.attack_models import attack_each, standardise
from studies.privacy.privacy_audit.attack_statistics import (
    auc,
    bootstrap_groups,
    interval,
    tpr_at_fpr,
)
from studies.privacy.privacy_audit.embedding_features import (
    EmbeddingFeatures,
    Extract,
    PrototypeFeatures,
    sent_embeddings,
    train_encoders,
)
from studies.privacy.privacy_audit.gradient_inversion import EmbeddingInversion, FeatureInversion
from studies.privacy.privacy_audit.pairs import Pairs, baseline_features, matched_pairs
from studies.privacy.privacy_audit.updates import UpdateFeatures

BOOTSTRAPS = 500

CONTROL = "model updates, the target's edges rewired"
"""What leaves in the control, as the table says."""

CONTROL_OF = ("fedavg",)
"""The methods that the control is run for."""


class Observer(Protocol):
    """Computes features of pairs of one client's nodes from messages at the client's boundary."""

    def receive(self, direction: str, kind: str, payload: Mapping[str, Tensor]) -> None:
        """Process a message."""

    def features(self, pairs: Pairs) -> np.ndarray:
        """Features of pairs, shape (N, k); NaN where unknown."""


@dataclass(frozen=True)
class Channel:
    """Something that leaves clients: what it is, an observer per client, and what else the attack
    found, called at the end.

    ``attacked`` are the observers of the attacked clients; by default those that the attack on
    others is learned from.
    """

    leaves: str
    observers: Sequence[Observer] = ()
    remark: Callable[[], str] = str
    attacked: Sequence[Observer] = ()


def measure(method: Method, task: Task, parameters: Any) -> list[dict[str, Any]]:
    """Run a method, watch its messages, and attack them; the rows of :func:`attack`."""
    pairs = [
        matched_pairs(graph, seeding.generator(task.seed, f"client{i}", "audit", "pairs"))
        for i, (graph, _) in enumerate(task.subgraphs())
    ]
    watched, channels = channels_of(method.name, task, parameters, pairs)

    def receive(client: int, *message: Any) -> None:
        for channel in channels:
            channel.observers[client].receive(*message)

    method.run(replace(watched, observers=(receive,)), parameters)
    if method.name in CONTROL_OF:
        attacked = [
            updates_on_rewired_edges(method, task, parameters, client)
            for client in range(len(pairs))
        ]
        channels.append(replace(channels[0], leaves=CONTROL, attacked=attacked))
    return attack(task, pairs, channels)


def updates_on_rewired_edges(
    method: Method, task: Task, parameters: Any, client: int
) -> UpdateFeatures:
    """Features of pairs from a client's updates in a run in which its edges, and no other client's,
    are :func:`rewired`.
    """
    observer = UpdateFeatures(*task.subgraphs()[client])

    def receive(number: int, *message: Any) -> None:
        if number == client:
            observer.receive(*message)

    method.run(replace(rewired(task, client), observers=(receive,)), parameters)
    return observer


def rewired(task: Task, client: int) -> Task:
    """The run with a client's inner edges replaced by matched non-edges, of the same classes and
    nearly the same degrees.
    """
    assert task.partition is not None
    graph, nodes = task.graph, task.partition.nodes(client)
    pairs = matched_pairs(
        graph.subgraph(nodes), seeding.generator(task.seed, f"client{client}", "audit", "placebo")
    )
    edges = graph.edges()
    others = edges[~np.isin(edges, nodes).all(axis=1)]
    replaced = np.vstack([others, nodes[pairs.nodes[~pairs.is_edge]]])
    return replace(
        task,
        graph=Graph.from_edges(replaced, graph.features, graph.labels, graph.num_classes),
        step_results={},
    )


def attack(task: Task, pairs: Sequence[Pairs], channels: Sequence[Channel]) -> list[dict[str, Any]]:
    """Attack each channel.

    Returns:
        A row per channel, or one without any message: leaves; pairs, their number; coverage, share
        of them that the messages tell of; AUC and TPR of the attack, of the baseline, and the gain,
        with their intervals by a bootstrap of whole clients; AUC of both among the covered pairs,
        None without any; models, those selected; remark.
    """
    group = np.repeat(np.arange(len(pairs)), [len(each.nodes) for each in pairs])
    is_edge = np.concatenate([each.is_edge for each in pairs])
    known = np.concatenate(
        [baseline_features(*part, each) for part, each in zip(task.subgraphs(), pairs, strict=True)]
    )
    samples = bootstrap_groups(
        group, BOOTSTRAPS, seeding.generator(task.seed, "audit", "bootstrap")
    )
    baseline = attack_each(known, is_edge, group, task.seed)
    rows = []
    for channel in track(channels, f"{task.name}: attacks") if channels else [Channel("nothing")]:
        found, covered = baseline, np.zeros(len(is_edge), dtype=bool)
        if channel.observers:
            learned, attacked = (
                np.concatenate(
                    [each.features(of) for each, of in zip(observers, pairs, strict=True)]
                )
                for observers in (channel.observers, channel.attacked or channel.observers)
            )
            covered = np.isfinite(attacked).any(axis=1)
            features = [
                np.column_stack([known, standardise(each, group)]) for each in (learned, attacked)
            ]
            found = attack_each(features[0], is_edge, group, task.seed, features[1])
        row: dict[str, Any] = {
            "leaves": channel.leaves,
            "pairs": len(is_edge),
            "coverage": float(covered.mean()),
        }
        compared = {
            "": (found.scores, None),
            "baseline_": (baseline.scores, None),
            "gain_": (found.scores, baseline.scores),
        }
        for prefix, (scores, subtracted) in compared.items():
            for name, metric in {"auc": auc, "tpr": tpr_at_fpr}.items():
                row |= interval(metric, scores, is_edge, samples, subtracted).columns(prefix + name)
        some = len(np.unique(is_edge[covered])) == 2
        for prefix, scores in {
            "covered_": found.scores,
            "covered_baseline_": baseline.scores,
        }.items():
            row[f"{prefix}auc"] = auc(scores[covered], is_edge[covered]) if some else None
        rows.append(
            {
                **row,
                "models": ", ".join(sorted(set(found.models.values()))),
                "remark": channel.remark(),
            }
        )
    return rows


def channels_of(
    name: str, task: Task, parameters: Any, pairs: Sequence[Pairs]
) -> tuple[Task, list[Channel]]:
    """What leaves the clients of a method; and the task to run, with the results of steps that had
    to be computed for it.
    """
    parts = task.subgraphs()
    graphs = [graph for graph, _ in parts]
    channels = []

    def add_embeddings(
        leaves: str, extract: Callable[[int], Extract], known: bool = False, remark: Callable = str
    ) -> None:
        observers = [
            EmbeddingFeatures(graph, pairs[i], extract(i), known) for i, graph in enumerate(graphs)
        ]
        channels.append(Channel(leaves, observers, remark))

    def recovered(what: str, inversions: Sequence[FeatureInversion | EmbeddingInversion]) -> str:
        found = sum(len(each.found) for each in inversions)
        return (
            f"{what} of {found} of {sum(graph.num_nodes for graph in graphs)} nodes "
            "recovered exactly"
        )

    if name not in ("local", "locsage_plus"):
        channels.append(Channel("model updates", [UpdateFeatures(*part) for part in parts]))
    if name in ("fedgnn", "fedgraph"):
        # Embeddings that enter the second and later convolutions; what enters the first is a map of
        # features.
        levels = range(1, task.setting.layers)
        endpoints = [edges.endpoints for edges in cross_edges(task)]
        add_embeddings(
            "embeddings of border nodes",
            lambda i: sent_embeddings([*map(upward, levels)], lambda: endpoints[i]),
            known=True,
        )
    if name == "fedgsl":
        add_embeddings(
            "noised embeddings of all nodes",
            lambda i: sent_embeddings([fedgsl.EMBEDDINGS], lambda: np.arange(graphs[i].num_nodes)),
            known=True,
        )
    if name == "fedsage_plus":
        drawn: dict[int, np.ndarray] = {}  # the nodes of each client's latest request
        task = replace(task, inspectors=(lambda what, shown: drawn.update([shown]),))
        add_embeddings(
            "embeddings in requests to other clients",
            lambda i: sent_embeddings([cross_client.REQUEST], lambda: drawn[i]),
        )
        scale = (
            1.0
            if parameters.scale == "paper"
            else 1 / (parameters.max_generated * task.graph.num_features)
        )
        answers = [FeatureInversion(graph.features.toarray(), scale) for graph in graphs]
        channels.append(
            Channel(
                "gradients returned to other clients",
                answers,
                partial(recovered, "features", answers),
            )
        )
    if name.startswith("feddep") and parameters.depth > 0 and parameters.encoder == "local":
        encoders, pretrained = train_encoders(task, parameters)
        task = replace(task, step_results={**task.step_results, "pretrain": pretrained})
        if name == "feddep_wo_proto":
            inversions = [EmbeddingInversion(z) for z in pretrained.of_clients("embeddings")]
            remark = partial(recovered, "embeddings", inversions)
            add_embeddings(
                "gradients returned to other clients",
                lambda i: inversions[i].extract,
                remark=remark,
            )
        else:
            observers = [PrototypeFeatures(*each) for each in zip(graphs, encoders, strict=True)]
            channels.append(Channel("prototypes, encoder known", observers))
    return task, channels
