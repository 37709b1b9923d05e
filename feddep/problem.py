"""What a framework is given, and what it gives back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from feddep import seeding
from feddep.errors import PartitionError
from feddep.evaluation import Evaluator
from feddep.graph import Graph
from feddep.history import History
from feddep.nn.sage import GraphSAGE
from feddep.partition import Partition
from feddep.progress import track
from feddep.settings import Setting
from feddep.splits import Split

Part = tuple[Graph, Split]
"""A client's subgraph and its training, validation and test nodes."""


@dataclass(frozen=True)
class Problem:
    """One run of the benchmark: a graph, who holds which part of it, and how to train.

    Attributes:
        name: how the run is called on its progress bar.
        graph: the global graph, features scaled as the configuration says.  Only the experimenter sees it whole.
        split: training, validation and test nodes of the global graph.
        partition: which client holds which node; none where the framework sees the whole graph.
        setting: how classifiers are trained.
        seed: the run's seed, from which every random draw follows.
        device: where tensors live, ``cpu`` or ``cuda``.
        made: results of the framework's steps that are there already, each a :class:`feddep.steps.Made`, by stage.
    """

    name: str
    graph: Graph
    split: Split
    partition: Partition | None
    setting: Setting
    seed: int
    device: str = "cpu"
    made: Mapping[str, Any] = field(default_factory=dict)

    def new_model(self) -> GraphSAGE:
        """A GraphSAGE for this graph with the run's initial weights: the same for every framework and client."""
        setting = self.setting
        model = GraphSAGE(
            self.graph.num_features, setting.hidden, self.graph.num_classes, setting.layers, setting.fanout, setting.dropout
        )
        model.reset_parameters(torch.Generator().manual_seed(seeding.derive_seed(self.seed, "weights")))
        return model.to(self.device)

    @cached_property
    def evaluator(self) -> Evaluator:
        """The experimenter's view: full neighbourhoods on the global graph."""
        return Evaluator(self.graph, self.device)

    def test(self, model: GraphSAGE) -> float:
        """Accuracy on the global graph's test nodes."""
        return self.evaluator.accuracy(model, self.split.test)

    def subgraphs(self) -> list[Part]:
        """Each client's induced subgraph and its share of the split, in the subgraph's own node ids.

        Raises:
            PartitionError: if there is no partition, or a client holds no validation node to choose a round by.
        """
        if self.partition is None:
            raise PartitionError(f"{self.name} needs a partition of the graph, but none was given")
        parts = []
        for client in range(self.partition.num_clients):
            nodes = self.partition.nodes(client)
            split = self.split.restrict(nodes)
            if not len(split.val):
                raise PartitionError(
                    f"client {client} of {self.partition.num_clients} holds {len(nodes)} nodes but none for validation; "
                    "use fewer clients (key clients) or a larger split.val"
                )
            parts.append((self.graph.subgraph(nodes), split))
        return parts

    def rounds(self) -> Iterator[int]:
        """1 … rounds, with a progress bar."""
        return track(range(1, self.setting.rounds + 1), self.name)


@dataclass(frozen=True)
class Outcome:
    """What came out of a run.

    Attributes:
        histories: one history a model that was trained: one for a shared model, one a client for local models.
        ledger: what crossed the clients' borders (rows of :meth:`feddep.federation.ledger.Ledger.rows`).
        clients: facts on each client to report beside its own model's accuracy; empty for a shared model.
    """

    histories: list[History]
    ledger: list[dict[str, Any]] = field(default_factory=list)
    clients: Sequence[Mapping[str, Any]] = field(default_factory=list)

    def weights(self) -> dict[str, Tensor]:
        """Weights of every model at its best round, by name; a client's are prefixed with its number."""
        if len(self.histories) == 1:
            return dict(self.histories[0].best_weights)
        return {
            f"client{number}.{name}": tensor
            for number, history in enumerate(self.histories)
            for name, tensor in history.best_weights.items()
        }
