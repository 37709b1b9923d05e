"""The task that a method is given, and the result that it returns."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import entr
from torch import Tensor

from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.nn.encoders import Encoder, new_encoder
from feddep.nn.sage import GraphSAGE
from feddep.training.config import Evaluation, TrainingConfig, check_new_clients
from feddep.training.evaluation import GlobalAccuracy, macro_f1, share, total
from feddep.training.evaluator import Evaluator
from feddep.training.history import History
from feddep.utils import seeding
from feddep.utils.errors import ConfigError, Notice, PartitionError

ClientData = tuple[Graph, Split]
"""A client's subgraph and its training, validation and test nodes."""


class MajorityBaseline(NamedTuple):
    """The score of giving every node the same answer; a training that does no better has
    stalled.

    Attributes:
        accuracy: of the test nodes, by the most frequent class of the training nodes; or the area
            under the ROC curve, 0.5.
        loss: the least on the training nodes, the entropy of their classes, in nats; infinite where
            nodes are to be ranked.
    """

    accuracy: float
    loss: float


@dataclass(frozen=True)
class Task:
    """A graph, who holds which part of it, and how to train: all that a run is, but for its method.

    Attributes:
        name: what the run is called on its progress bar.
        graph: the global graph, features scaled as the configuration says.  Only the experimenter
            sees it whole.
        split: training, validation and test nodes of the global graph.
        partition: which client holds which node; none where the method sees the whole graph.
        setting: how classifiers are trained.
        seed: the run's seed, from which every random draw follows.
        device: where tensors live, ``cpu`` or ``cuda``.
        step_results: results of the method's steps that are at hand, each a
            :class:`feddep.methods.method.StepResult`, by stage.
        observers: called with every message that crosses a client's boundary, as
            :data:`feddep.federation.boundary.Observer` says: studies of what messages tell.
        inspectors: called with what a method shows of its inner state by :meth:`show`: studies of
            what nobody is sent.
        on_round: called after each round with what it measured
            (:meth:`feddep.training.evaluation.Judged.metrics`).
        evaluation: who is judged: ``owners`` where the setting asks for it, else what the method
            declares (:class:`feddep.methods.method.Method`).
        stacked: whether the models of all clients are computed at once where they train on all
            nodes (:mod:`feddep.training.together`); by default where their graphs are small.
            Numbers are the same to the last bit.
        shared: whether the server's weights are one model for all clients, which is evaluated on
            the global graph, and whose weights are kept.
    """

    name: str
    graph: Graph
    split: Split
    partition: Partition | None
    setting: TrainingConfig
    seed: int
    device: str = "cpu"
    step_results: Mapping[str, Any] = field(default_factory=dict)
    observers: Sequence[Callable[..., None]] = ()
    inspectors: Sequence[Callable[[str, Any], None]] = ()
    on_round: Callable[[dict[str, float]], None] | None = None
    evaluation: Evaluation = "global"
    shared: bool = True
    stacked: bool | None = None

    @property
    def model_sizes(self) -> tuple[int, int, int, int, float]:
        """The first arguments of every classifier: features, hidden channels, classes, layers,
        dropout.
        """
        graph, setting = self.graph, self.setting
        return (
            graph.num_features,
            setting.hidden_channels,
            graph.num_classes,
            setting.layers,
            setting.dropout,
        )

    def new_model(self) -> Encoder:
        """The setting's encoder for this graph with the run's initial weights: the same for every
        method and client.
        """
        return self.drawn(new_encoder(self.setting.encoder, *self.model_sizes))

    def new_sage(self) -> GraphSAGE:
        """A GraphSAGE, whatever the setting's encoder is, with the run's initial weights."""
        return self.drawn(GraphSAGE(*self.model_sizes))

    def drawn(self, model: Any, *stream: str) -> Any:
        """The model on the task's device, its initial weights drawn from a stream of the run, by
        default that of all classifiers.
        """
        model.reset_parameters(self.torch_generator(*(stream or ("weights",))))
        return model.to(self.device)

    def torch_generator(self, *path: str | int) -> torch.Generator:
        """A PyTorch generator on the CPU for the stream ``path`` of the run."""
        return seeding.torch_generator(self.seed, *path)

    @cached_property
    def evaluator(self) -> Evaluator:
        """The experimenter's view: full neighbourhoods on the global graph."""
        return Evaluator(self.graph, self.device, self.new_model().aggregation)

    def test(self, model: Any, evaluator: Evaluator | None = None) -> GlobalAccuracy:
        """Accuracies on the global graph, as an ``evaluator`` of it applies the model; by default
        with full neighbourhoods.
        """
        validation, test, classes = (evaluator or self.evaluator).counts(
            model, self.split, self.setting.metric
        )
        return GlobalAccuracy(share(*test), share(*validation), macro_f1([classes]))

    @property
    def ownership(self) -> Partition:
        """The partition of a task that has clients.

        Raises:
            PartitionError: if there is none.
        """
        if self.partition is None:
            raise PartitionError(f"{self.name} needs a partition of the graph, but none was given")
        return self.partition

    @cached_property
    def new_clients(self) -> set[int]:
        """Numbers of the clients of which training knows nothing, as the setting's
        ``new_clients`` asks for.
        """
        order = seeding.generator(self.seed, "new clients").permutation(self.ownership.num_clients)
        return set(order[: self.setting.new_clients].tolist())

    def with_new_clients(self) -> "Task":
        """The task whose new clients are tested, and nobody else; the others validate.

        Raises:
            ConfigError: if all clients are new.
        """
        check_new_clients(self.setting.new_clients, self.ownership.num_clients)
        new = self.ownership.node[np.isin(self.ownership.client, list(self.new_clients))]
        val, test = np.setdiff1d(self.split.val, new), np.intersect1d(self.split.test, new)
        return replace(self, split=Split(self.split.train, val, test))

    @property
    def known(self) -> ClientData:
        """What training knows of: the graph and its split, without the nodes of new clients."""
        if not self.setting.new_clients:
            return self.graph, self.split
        old = ~np.isin(self.ownership.client, list(self.new_clients))
        nodes = np.unique(self.ownership.node[old])
        return self.graph.subgraph(nodes), self.split.restrict(nodes)

    def check_hidden(self) -> None:
        """Make sure that classifiers have embeddings, the inputs of their last layer.

        Raises:
            ConfigError: if they have a single layer, which reads the features.
        """
        if self.setting.layers < 2:
            raise ConfigError(
                f"layers is {self.setting.layers} (key settings), but {self.name} needs a hidden "
                "layer, so at least 2"
            )

    def subgraphs(self) -> list[ClientData]:
        """Each client's induced subgraph and its share of the split, in the subgraph's own node
        ids.

        Raises:
            PartitionError: if there is no partition, or no client holds a validation node to choose
                a round by.
        """
        owned = map(self.ownership.nodes, range(self.ownership.num_clients))
        parts = [(self.graph.subgraph(nodes), self.split.restrict(nodes)) for nodes in owned]
        without = [str(client) for client, (_, split) in enumerate(parts) if not len(split.val)]
        if len(without) == len(parts):
            raise PartitionError(
                "no client holds a node for validation; use fewer clients (key clients) or a "
                "larger split.val"
            )
        if without:
            plural = "clients have" if len(without) > 1 else "client has"
            what = (
                f"{len(without)} {plural} no node for validation ({', '.join(without)}) and "
                "no say in the choice of a round"
            )
            warnings.warn(f"{self.name}: {what}", Notice, stacklevel=2)
        return parts

    @property
    def constant(self) -> MajorityBaseline:
        """The score of a constant answer on this split; one a client, where owners judge."""
        labels, split, owner = self.graph.labels, self.split, np.zeros_like(self.graph.labels)
        if self.evaluation == "owners" and self.partition is not None:
            node, owner = self.partition.node, self.partition.client
            labels, split = labels[node], split.restrict(node)
        train, test = split.train, split.test
        counts = np.zeros((owner.max() + 1, self.graph.num_classes))
        np.add.at(counts, (owner[train], labels[train]), 1)
        # Who ranks nodes well may do so with a loss above the entropy.
        if self.setting.metric == "roc_auc":
            return MajorityBaseline(0.5, math.inf)
        accuracy = (labels[test] == counts.argmax(axis=1)[owner[test]]).mean()
        return MajorityBaseline(
            float(accuracy),
            float(
                entr(counts / counts.sum()).sum() - entr(counts.sum(axis=1) / counts.sum()).sum()
            ),
        )

    def show(self, what: str, value: Any) -> None:
        """Let the task's inspectors see something that stays where it is, such as the models of a
        vertical training.
        """
        for inspect in self.inspectors:
            inspect(what, value)

    def client_facts(self) -> list[dict[str, int]]:
        """Number of nodes and of training nodes of each client."""
        owned = map(self.ownership.nodes, range(self.ownership.num_clients))
        return [
            {"client": i, "nodes": len(nodes), "train": len(self.split.restrict(nodes).train)}
            for i, nodes in enumerate(owned)
        ]


@dataclass(frozen=True)
class RunResult:
    """The result of a run.

    Attributes:
        history: what was counted in each round, and the weights at the best of them.
        communication: what crossed the clients' boundary (rows of
            :meth:`feddep.federation.communication.CommunicationLog.rows`).
        clients: facts on each client to report beside its own model's accuracy; empty for a shared
            model.
        constant: what a constant answer reaches, of a run that was begun by
            :meth:`feddep.methods.method.Method.run`.
    """

    history: History
    communication: list[dict[str, Any]] = field(default_factory=list)
    clients: Sequence[Mapping[str, Any]] = field(default_factory=list)
    constant: MajorityBaseline | None = None

    @property
    def curve(self) -> dict[str, list[float]]:
        """A list over the rounds of each of the metrics
        (:meth:`feddep.training.evaluation.Judged.metrics`).
        """
        rounds = range(1, len(self.history.losses) + 1)
        rows = [self.history.judged[0].metrics(number) for number in rounds]
        return {name: [row[name] for row in rows] for name in rows[0]}

    @property
    def stalled(self) -> bool:
        """Whether it is no better than a constant answer: its least training loss, or, of a shared
        model, its test accuracy.

        Of the accuracy at the round best on validation a margin of 0.01 is taken off, of the loss
        one of 1 %.
        """
        if self.constant is None:
            return False
        judged = self.history.judged[-1]
        at_best = 1.0
        if self.history.evaluation == "owners":
            at_best = share(*total(judged.local(judged.rounds, "after")))
        elif len(judged.rounds) == 1:
            (at_best,) = judged.on_graph(judged.rounds)
        least = np.nanmin([*self.curve["loss"], math.inf])  # of a round it may be unknown
        return bool(least > 0.99 * self.constant.loss or at_best < self.constant.accuracy + 0.01)

    def weights(self) -> dict[str, Tensor]:
        """Weights of every model at its best round, by name; a client's are prefixed with its
        number.
        """
        models = self.history.best_weights
        return {
            f"client{i}.{name}" if len(models) > 1 else name: tensor
            for i, weights in models.items()
            for name, tensor in weights.items()
        }
