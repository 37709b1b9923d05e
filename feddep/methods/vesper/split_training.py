"""Training of VESPER and its baselines by SplitNN (VESPER, Algorithm 3), and validation.

Inference is by the same message passing with the same noise: B must not learn more by asking for
predictions than it does in training, and the paper has no other way to compute them.  After each
round, A sends the embeddings of all validation and test nodes, computed as one release.  B counts
correct answers; A is told none of them.
"""

import itertools
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from torch import nn

from feddep.federation.boundary import Boundary, Schema
from feddep.federation.communication import merged
from feddep.graph.blocks import BlockSampler
from feddep.graph.degree_bounding import KEEPING, bounded_adjacency
from feddep.graph.graph import Graph
from feddep.methods.vesper import (
    GAPAuthorsParameters,
    MessagePassingParameters,
    PerturbedParameters,
    TruncatedParameters,
    VerticalParameters,
    VFGNNParameters,
    WeightParameters,
)
from feddep.methods.vesper.graph_party import (
    Clipping,
    GraphParty,
    RootBatches,
    noised_degrees,
)
from feddep.methods.vesper.label_party import LabelParty
from feddep.methods.vesper.networks import ConcatDecoder, GRUDecoder, HopDecoder, Perceptron
from feddep.methods.vesper.noise_budget import aggregation_of, noise_scale
from feddep.methods.vesper.perturbed import (
    Aggregation,
    Design,
    PerturbedMessagePassing,
)
from feddep.training.evaluation import Counts, GlobalAccuracy, macro_f1, share
from feddep.training.history import History
from feddep.training.rounds import run_rounds
from feddep.training.task import RunResult, Task
from feddep.utils.errors import ConfigError

VALIDATION = "validation representations"
TEST = "test representations"
ALL = "representations of all nodes"
TRAINING = ("representations", "gradients")
PRETRAINING = ("encodings", "gradients of encodings")

_TRAINED = {
    "trained": ("encoder", "extractor"),
    "dpsgd": ("encoder", "extractor"),
    "detached": ("extractor",),
    "frozen": (),
}
"""The parts of A's model that are trained, by how weights are trained."""


@dataclass(frozen=True)
class Protocol:
    """Actions of the parties.

    Attributes:
        parameters: encoder and decoder's perceptron.
        design: message passing; none for an MLP.
        degree: the largest degree D.
        bounding: how D bounds degrees, as in
            :class:`feddep.methods.vesper.MessagePassingParameters`.
        decoder: ``concat`` or ``gru``.
        weights: how A's weights are trained, as in :class:`feddep.methods.vesper.WeightParameters`.
        one_shot: whether each layer is released once for all nodes: their embeddings are sent once,
            in place of those of each batch, or with ``detached`` weights, A keeps noised sums and
            sends what its weights of the step make of them.
        encoder_epochs: epochs in which the encoder is trained before, without the graph.
        clipping: what A's gradient goes through.
        degree_noise: standard deviation of the noise on degrees.
        kinds: the kinds of messages with embeddings and with their gradients; the former also names
            random streams.
    """

    parameters: VerticalParameters
    design: Design | None = None
    degree: int = 1
    bounding: str = "none"
    decoder: Literal["concat", "gru"] = "concat"
    weights: str = "trained"
    one_shot: bool = False
    encoder_epochs: int = 0
    clipping: Clipping | None = None
    degree_noise: float = 0.0
    kinds: tuple[str, str] = TRAINING

    @property
    def sent_once(self) -> bool:
        """Whether embeddings are sent once, for all nodes."""
        return self.one_shot and self.weights != "detached"

    def embeddings(self, layers: int) -> int:
        """How many embeddings are sent of a node, for so many layers."""
        if self.design is None:
            return 1
        return self.design.encodings + (1 if self.design.order == "noise_last" else layers)


def run_vertical_mlp(task: Task, parameters: VerticalParameters, steps: Any = None) -> RunResult:
    """Encoder and decoder without message passing: the MLP that sees no edge (Appendix C.3)."""
    return train(task, Protocol(parameters))


def run_vertical_gin(
    task: Task,
    parameters: MessagePassingParameters,
    steps: Any = None,
    aggregation: Aggregation = "gin",
) -> RunResult:
    """GIN or GCN without privacy: VESPER without noise or truncation (Appendix C.3)."""
    return train(task, _passing(parameters, Design(aggregation)))


run_vertical_gcn = partial(run_vertical_gin, aggregation="gcn")


def run_vfgnn(task: Task, parameters: VFGNNParameters, steps: Any = None) -> RunResult:
    """VFGNN: noise on the rows of the last layer, which have length C = 1 (Appendix C.5)."""
    return _run_perturbed(task, parameters, "vfgnn", parameters.aggregation, "noise_last")


def run_gap(task: Task, parameters: PerturbedParameters, steps: Any = None) -> RunResult:
    """GAP: the encoder without the graph, then noised sums without weights, then the decoder
    (Appendix C.3).
    """
    return _run_perturbed(task, parameters, "gap", "gin", "no_weights")


def run_gap_authors(task: Task, parameters: GAPAuthorsParameters, steps: Any = None) -> RunResult:
    """GAP by its authors' code: a node is no neighbour of its own, and both networks are theirs.

    Raises:
        ConfigError: if batches are of one node, which cannot be normalised.
    """
    if task.setting.batch_size < 2:
        raise ConfigError(
            f"batch_size is {task.setting.batch_size} (key settings), but {task.name} normalises "
            "batches, which takes at least 2 nodes"
        )
    return _run_perturbed(task, parameters, "gap_authors", "gin", "no_weights", own=False)


def run_vesper_gin(task: Task, parameters: WeightParameters, steps: Any = None) -> RunResult:
    """VESPER with PMP-GIN (Algorithms 1 and 3)."""
    return _run_perturbed(task, parameters, "vesper_gin", "gin", _order(parameters))


def run_vesper_gcn(task: Task, parameters: TruncatedParameters, steps: Any = None) -> RunResult:
    """VESPER with PMP-GCN and truncated message passing (Algorithms 2 and 3)."""
    return _run_perturbed(
        task,
        parameters,
        "vesper_gcn",
        "gcn",
        _order(parameters),
        parameters.degree_ratio,
        min_degree=parameters.min_degree,
        floor=parameters.min_degree if parameters.degree_ratio > 0 else 0,
    )


def _order(parameters: WeightParameters) -> str:
    return "noise_first" if parameters.weights == "detached" else "weights_first"


def _run_perturbed(
    task: Task,
    parameters: PerturbedParameters,
    method: str,
    aggregation: Aggregation,
    order: Any,
    degree_ratio: float = 0.0,
    **options: Any,
) -> RunResult:
    theta = noise_scale(
        len(task.split.train),
        task.graph.num_edges,
        task.setting,
        parameters,
        aggregation_of(method, parameters),
    )
    design = Design(aggregation, order, theta, **options)
    return train(task, perturbed(task, parameters, design, degree_ratio * theta))


def _passing(parameters: MessagePassingParameters, design: Design, **options: Any) -> Protocol:
    design = replace(design, encodings=parameters.encodings)
    return Protocol(
        parameters, design, parameters.degree, parameters.bounding, parameters.decoder, **options
    )


def perturbed(
    task: Task, parameters: PerturbedParameters, design: Design, degree_noise: float = 0.0
) -> Protocol:
    """The protocol of a method with noise."""
    weights, clipping = "frozen", None
    if isinstance(parameters, WeightParameters):
        weights = parameters.weights
        noise = parameters.gradient_ratio * design.theta * parameters.clip
        clipping = Clipping(parameters.clip, noise) if weights == "dpsgd" else None
    epochs = parameters.encoder_epochs
    if epochs is None:
        epochs = task.setting.rounds if weights in ("frozen", "detached") else 0
    return _passing(
        parameters,
        design,
        weights=weights,
        one_shot=parameters.release == "one_shot",
        encoder_epochs=epochs,
        clipping=clipping,
        degree_noise=degree_noise,
    )


def train(task: Task, protocol: Protocol) -> RunResult:
    """Train the encoder without the graph, where that is asked for, then all that is trained; test
    in every round.
    """
    encoder, communications = new_encoder(task, protocol.parameters), []
    if protocol.encoder_epochs:
        before = SplitTraining(task, Protocol(protocol.parameters, kinds=PRETRAINING), encoder)
        for _ in range(protocol.encoder_epochs):
            before.epoch()
        communications.append(before.boundary.communication.rows())
    training = SplitTraining(task, protocol, encoder)
    training.begin()
    history = History()

    def one_round(number: int) -> None:
        for _ in range(task.setting.local_epochs):
            loss = training.epoch()
        # Both parties have all nodes: local accuracy is global accuracy.
        counts, losses = training.evaluate(), [(1, loss)]
        tested = GlobalAccuracy(share(*counts.test[0]), macro_f1=macro_f1(counts.classes))
        history.keep([training.model], losses, counts)
        history.record(losses, counts, counts, [tested])

    run_rounds(task, history, one_round)
    return RunResult(history, merged(*communications, training.boundary.communication.rows()))


class SplitTraining:
    """Both parties, and the order in which they speak.

    A task's inspectors are shown it as ``split training``.

    Attributes:
        task: what is trained on.
        protocol: what the parties do.
        party_a: holds graph and features.
        party_b: holds labels.
        boundary: what stands between them.
        model: the weights of both, which only the experimenter sees together.
    """

    def __init__(self, task: Task, protocol: Protocol, encoder: Perceptron) -> None:
        """Set up the parties; ``encoder`` is A's, with the weights that it has by now."""
        self.task, self.protocol = task, protocol
        graph, split, setting, seed = task.graph, task.split, task.setting, task.seed
        stream = protocol.kinds[0]
        batches = [
            RootBatches(split.train, setting.batch_size, seed, f"batches of {stream}") for _ in "ab"
        ]
        self._split, self._steps, self._sent_once = split, batches[0].in_epoch, protocol.sent_once
        self._nodes = np.arange(graph.num_nodes)
        self.boundary = Boundary(messages(task, protocol), task.observers)

        extractor = None if protocol.design is None else new_extractor(task, protocol.design)
        decoder = new_decoder(task, protocol)
        self.model = nn.ModuleDict(
            {"encoder": encoder, **({} if extractor is None else {"extractor": extractor})}
        )
        trained = [part for name, part in self.model.items() if name in _TRAINED[protocol.weights]]
        self._answered = bool(trained)
        self.party_a = GraphParty(
            task,
            new_sampler(graph, protocol, seed),
            encoder,
            extractor,
            trained,
            batches[0],
            self.boundary,
            protocol.kinds,
            protocol.clipping,
            noised_degrees(graph, protocol.degree, protocol.degree_noise, seed)
            if protocol.degree_noise
            else None,
        )
        self.party_b = LabelParty(
            graph.labels, decoder, setting, batches[1], seed, stream, task.device
        )
        self.model["decoder"] = decoder
        task.show("split training", self)

    def begin(self) -> None:
        """Draw what is released once, and send it unless weights have yet to be learned."""
        if self.protocol.one_shot and not self._sent_once:
            self.party_a.keep_sums(self._nodes)
        elif self._sent_once:
            self.party_b.keep(*self.party_a.release({ALL: self._nodes}))

    def epoch(self) -> float:
        """⌈N_T/B⌉ steps; returns the mean loss a node, in nats."""
        for _ in range(self._steps):
            answer = self.party_b.learn(None if self._sent_once else self.party_a.represent())
            if self._answered:
                self.party_a.update(answer)
        return self.party_b.mean_loss()

    def evaluate(self) -> Counts:
        """How well validation and test nodes are classified, by B from what A sends."""
        groups = {VALIDATION: self._split.val, TEST: self._split.test}
        received = itertools.repeat(None) if self._sent_once else self.party_a.release(groups)
        (validation, _), (test, classes) = map(self.party_b.score, groups.values(), received)
        return Counts((validation,), (test,), (classes,))


def messages(task: Task, protocol: Protocol) -> dict[str, Schema]:
    """The kinds of messages that may cross, each with its shape."""
    count, width = protocol.embeddings(task.setting.layers), task.setting.hidden_channels
    up, down = protocol.kinds
    sizes = {ALL: task.graph.num_nodes}
    if not protocol.sent_once:
        sizes = (
            {VALIDATION: len(task.split.val), TEST: len(task.split.test)}
            if up == TRAINING[0]
            else {}
        )
        sizes |= dict.fromkeys(
            (up, down) if _TRAINED[protocol.weights] else (up,), task.setting.batch_size
        )
    return {kind: {"values": (size, count, width)} for kind, size in sizes.items()}


def new_sampler(graph: Graph, protocol: Protocol, seed: int) -> BlockSampler:
    """Graph that A draws message-flow graphs from: the graph, or the graph with degrees bounded
    once.
    """
    if protocol.bounding in KEEPING:
        return BlockSampler(
            bounded_adjacency(graph, protocol.degree, seed, protocol.bounding), protocol.degree
        )
    return BlockSampler(
        graph.adjacency, protocol.degree if protocol.bounding == "sampled" else graph.num_nodes
    )


def new_encoder(task: Task, parameters: VerticalParameters) -> Perceptron:
    """A's encoder with the run's initial weights: from F features to width d, ReLU after each of
    its maps, or GAP's authors'.
    """
    widths = [task.graph.num_features, *[task.setting.hidden_channels] * parameters.encoder_layers]
    selu = isinstance(parameters, GAPAuthorsParameters)
    encoder = Perceptron(widths, task.setting.dropout, relu_last=not selu, selu=selu)
    return task.drawn(encoder, "weights", "encoder")


def new_extractor(task: Task, design: Design) -> PerturbedMessagePassing:
    """A's message passing with the run's initial weights."""
    setting = task.setting
    extractor = PerturbedMessagePassing(setting.hidden_channels, setting.layers, design)
    return task.drawn(extractor, "weights", "extractor")


def new_decoder(task: Task, protocol: Protocol) -> ConcatDecoder | GRUDecoder | HopDecoder:
    """B's decoder with the run's initial weights."""
    _, width, classes, layers, dropout = task.model_sizes
    maps, count = protocol.parameters.decoder_layers, protocol.embeddings(layers)
    decoder: Any
    if isinstance(protocol.parameters, GAPAuthorsParameters):
        decoder = HopDecoder(width, count, classes, dropout, mapped=protocol.design is not None)
    elif protocol.decoder == "gru":
        decoder = GRUDecoder(width, classes, maps, dropout)
    else:
        decoder = ConcatDecoder(width, count, classes, maps, dropout)
    return task.drawn(decoder, "weights", "decoder", protocol.kinds[0])
