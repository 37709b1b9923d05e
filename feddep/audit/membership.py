"""Edge membership inference: which pairs of a client's nodes are joined, from what the client sends.

Each client is attacked in turn by a model that has learned on the others, as if they had colluded.  The same model without any
message is the baseline: what it cannot tell, and the attack can, has leaked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from feddep import frameworks, seeding
from feddep.audit import AuditError
from feddep.audit.attacks import attack_each, standardised
from feddep.audit.embedded import PrototypeReading, pretrain
from feddep.audit.pairs import Pairs, known_before, matched
from feddep.audit.recovery import EmbeddingRecovery, FeatureRecovery
from feddep.audit.rows import RowReading
from feddep.audit.scores import Interval, auc, gain, interval, resamplings, sensitivity
from feddep.audit.tap import Message, listening
from feddep.audit.updates import UpdateReading
from feddep.baselines.border import borders
from feddep.baselines.routing import upward
from feddep.frameworks import fedgsl
from feddep.neighbour_generation import federated
from feddep.neighbour_generation.training import impair_client
from feddep.problem import Problem
from feddep.progress import track

BOOTSTRAPS = 500


class Reading(Protocol):
    """Makes facts on pairs of one client's nodes of what it hears."""

    def hear(self, message: Message) -> None:
        """Take note of a message."""

    def facts(self, pairs: Pairs) -> np.ndarray:
        """What is known of pairs, shape (N, k)."""


@dataclass(frozen=True)
class Channel:
    """Something that leaves clients.

    Attributes:
        leaves: what it is.
        readings: one a client.
        recovery: what else came out of it, to be asked for when all is heard.
    """

    leaves: str
    readings: Sequence[Reading]
    recovery: Callable[[], str] = str


@dataclass(frozen=True)
class Line:
    """How one attack went.

    Attributes:
        leaves: what was attacked.
        pairs: number of pairs, half of them edges.
        coverage: share of them of which the messages tell at all.
        auc, tpr: of the attack.
        baseline_auc, baseline_tpr: of the attack without any message.
        gain_auc, gain_tpr: the differences.
        covered_auc, covered_baseline_auc: AUC, with and without messages, among the pairs that they tell of; none without any.
        models: the models that were chosen, each once.
        remark: what else came out.
    """

    leaves: str
    pairs: int
    coverage: float
    auc: Interval
    tpr: Interval
    baseline_auc: Interval
    baseline_tpr: Interval
    gain_auc: Interval
    gain_tpr: Interval
    covered_auc: float | None
    covered_baseline_auc: float | None
    models: str
    remark: str

    def as_dict(self) -> dict[str, Any]:
        """A row of a table; an interval takes three columns."""
        row: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Interval):
                row |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
            else:
                row[name] = value
        return row


def measure(name: str, problem: Problem, parameters: Any) -> list[Line]:
    """Run a framework, listen, attack: one line for each thing that leaves.

    Args:
        name: the framework's name, without its parameters.
        problem: the run.
        parameters: the framework's parameters.

    Raises:
        AuditError: if the framework has no clients, or its messages are not known here.
    """
    module = frameworks.load(name)
    if not module.PARTITIONED:
        raise AuditError(f"the framework {name} has no clients, so nothing leaves any")
    pairs = [
        matched(graph, seeding.generator(problem.seed, f"client{i}", "audit", "pairs"))
        for i, (graph, _) in enumerate(problem.subgraphs())
    ]
    problem, channels = listen_to(name, problem, parameters, pairs)
    heard: set[str] = set()

    def hear(message: Message) -> None:
        heard.add(message.kind)
        for channel in channels:
            for reading in channel.readings:
                reading.hear(message)

    with listening(hear):
        module.run(problem, parameters)
    if heard and not channels:
        raise AuditError(f"the framework {name} sends {', '.join(sorted(heard))}, which no attack here is made for")
    return attack(problem, pairs, channels if heard else [])


def attack(problem: Problem, pairs: Sequence[Pairs], channels: Sequence[Channel]) -> list[Line]:
    """Attack each channel; without any there is one line, that of an attacker who hears nothing."""
    group = np.repeat(np.arange(len(pairs)), [len(each.nodes) for each in pairs])
    is_edge = np.concatenate([each.is_edge for each in pairs])
    known = np.concatenate([known_before(*part, each) for part, each in zip(problem.subgraphs(), pairs, strict=True)])
    samples = resamplings(is_edge, BOOTSTRAPS, seeding.generator(problem.seed, "audit", "bootstrap"))
    before = attack_each(known, is_edge, group, problem.seed)
    lines = []
    for channel in track(channels, f"{problem.name}: attacks") if channels else [Channel("nothing", ())]:
        guesses, covered = before, np.zeros(len(is_edge), dtype=bool)
        if channel.readings:
            facts = np.concatenate([reading.facts(each) for reading, each in zip(channel.readings, pairs, strict=True)])
            covered = np.isfinite(facts).any(axis=1)
            facts = standardised(facts, group)
            guesses = attack_each(np.column_stack([known, facts]), is_edge, group, problem.seed)
        of_attack, of_baseline = guesses.scores, before.scores
        line = Line(
            leaves=channel.leaves,
            pairs=len(is_edge),
            coverage=float(covered.mean()),
            auc=interval(auc, of_attack, is_edge, samples),
            tpr=interval(sensitivity, of_attack, is_edge, samples),
            baseline_auc=interval(auc, of_baseline, is_edge, samples),
            baseline_tpr=interval(sensitivity, of_baseline, is_edge, samples),
            gain_auc=gain(auc, of_attack, of_baseline, is_edge, samples),
            gain_tpr=gain(sensitivity, of_attack, of_baseline, is_edge, samples),
            covered_auc=_auc_of(of_attack, is_edge, covered),
            covered_baseline_auc=_auc_of(of_baseline, is_edge, covered),
            models=", ".join(sorted(set(guesses.models.values()))),
            remark=channel.recovery(),
        )
        lines.append(line)
    return lines


def _auc_of(scores: np.ndarray, positive: np.ndarray, some: np.ndarray) -> float | None:
    return auc(scores[some], positive[some]) if len(np.unique(positive[some])) == 2 else None


def listen_to(name: str, problem: Problem, parameters: Any, pairs: Sequence[Pairs]) -> tuple[Problem, list[Channel]]:
    """What leaves the clients of a framework; and the problem, with the steps that had to be made on the way."""
    parts = problem.subgraphs()
    channels = []
    if name not in ("local", "locsage_plus"):
        channels.append(Channel("model updates", [UpdateReading(i, *part) for i, part in enumerate(parts)]))
    if name in ("fedgnn", "fedgraph"):
        channels.append(Channel("embeddings of border nodes", _of_border(problem, pairs)))
    if name == "fedgsl":
        channels.append(Channel("noised embeddings of all nodes", _of_all(problem, pairs)))
    if name == "fedsage_plus":
        channels += _of_neighgen(problem, parameters, pairs)
    if name.startswith("feddep") and parameters.depth > 0 and parameters.encoder == "own":
        encoders, made = pretrain(problem, parameters.pretraining)
        problem = replace(problem, made={**problem.made, "pretrain": made})
        if name == "feddep_wo_proto":
            channels.append(_of_answers(problem, made.of_clients("embeddings"), pairs))
        else:
            readings = [PrototypeReading(i, graph, encoders[i]) for i, (graph, _) in enumerate(parts)]
            channels.append(Channel("prototypes, encoder known", readings))
    return problem, channels


def _of_border(problem: Problem, pairs: Sequence[Pairs]) -> list[Reading]:
    """Embeddings that enter the second and later convolutions; what enters the first is an image of features."""

    def rows(client: int, boundary: np.ndarray) -> Callable[[Message], tuple[np.ndarray, np.ndarray] | None]:
        kinds = {upward(client, level) for level in range(1, problem.setting.layers)}
        return lambda message: (boundary, message.payload["embeddings"].cpu().numpy()) if message.kind in kinds else None

    outer = borders(problem)
    return [
        RowReading(i, graph, pairs[i], rows(i, outer[i].boundary), "model") for i, (graph, _) in enumerate(problem.subgraphs())
    ]


def _of_all(problem: Problem, pairs: Sequence[Pairs]) -> list[Reading]:
    def rows(client: int) -> Callable[[Message], tuple[np.ndarray, np.ndarray] | None]:
        def read(message: Message) -> tuple[np.ndarray, np.ndarray] | None:
            if message.kind != fedgsl.embeddings_of(client) or message.direction != "up":
                return None
            embeddings = message.payload["embeddings"].cpu().numpy()
            return np.arange(len(embeddings)), embeddings

        return read

    return [RowReading(i, graph, pairs[i], rows(i), "model") for i, (graph, _) in enumerate(problem.subgraphs())]


def sampled_nodes(problem: Problem, parameters: Any, client: int) -> Callable[[], np.ndarray]:
    """The nodes of each of client i's requests in FedSage+, in its own subgraph's ids: a function to be called once a request.

    They are drawn a second time from the stream of :class:`feddep.neighbour_generation.training.NeighGenTrainer`.
    """
    kept = impair_client(problem, parameters, client, problem.subgraphs()[client]).kept
    sampling = seeding.generator(problem.seed, f"client{client}", "neighgen", "sampling")
    for _ in range(parameters.local_epochs):
        sampling.permutation(len(kept))
    return lambda: kept[np.sort(sampling.permutation(len(kept))[: min(parameters.generator_batch, len(kept))])]


def _of_neighgen(problem: Problem, parameters: Any, pairs: Sequence[Pairs]) -> list[Channel]:
    def rows(client: int) -> Callable[[Message], tuple[np.ndarray, np.ndarray] | None]:
        following, kind = sampled_nodes(problem, parameters, client), federated.request_of(client)

        def read(message: Message) -> tuple[np.ndarray, np.ndarray] | None:
            if message.kind != kind or message.direction != "up":
                return None
            return following(), message.payload["embeddings"].cpu().numpy()

        return read

    parts = problem.subgraphs()
    scale = 1.0 if parameters.scale == "paper" else 1 / (parameters.max_generated * problem.graph.num_features)
    recoveries = [FeatureRecovery(j, len(parts), graph.features.toarray(), scale) for j, (graph, _) in enumerate(parts)]

    def recovered() -> str:
        found, nodes = sum(len(each.found) for each in recoveries), sum(graph.num_nodes for graph, _ in parts)
        return f"features of {found} of {nodes} nodes recovered exactly"

    requests = [RowReading(i, graph, pairs[i], rows(i)) for i, (graph, _) in enumerate(parts)]
    return [
        Channel("embeddings in requests to other clients", requests),
        Channel("gradients returned to other clients", [_Edgeless(each) for each in recoveries], recovered),
    ]


class _Edgeless:
    """Answers are computed from features alone: there is nothing in them on pairs."""

    def __init__(self, recovery: FeatureRecovery) -> None:
        self.hear = recovery.hear

    def facts(self, pairs: Pairs) -> np.ndarray:
        return np.empty((len(pairs.nodes), 0))


def _of_answers(problem: Problem, embeddings: Sequence[Any], pairs: Sequence[Pairs]) -> Channel:
    parts = problem.subgraphs()
    recoveries = [EmbeddingRecovery(j, len(parts), z) for j, z in enumerate(embeddings)]

    def recovered() -> str:
        found, nodes = sum(len(each.found) for each in recoveries), sum(graph.num_nodes for graph, _ in parts)
        return f"embeddings of {found} of {nodes} nodes recovered exactly"

    readings = [RowReading(j, graph, pairs[j], recoveries[j].rows) for j, (graph, _) in enumerate(parts)]
    return Channel("gradients returned to other clients", readings, recovered)
