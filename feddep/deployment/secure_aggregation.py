"""Secure aggregation of the classifier's weights by Flower's SecAgg+ (Bell et al., 2020): the server learns their mean alone.

A round has the same message as without (:mod:`feddep.deployment.client_app`), but clients keep the weights that they answer with.
Then Flower's workflow and its mod of the ClientApp exchange keys, send the masked weights and take the masks off their sum: four
more messages.  Protocol and cryptography are Flower's.  Weights are multiplied by nodes / most nodes and rounded at random to
:data:`LEVELS` levels, so the mean is that of the simulation up to rounding.

The clients' keys reach each other through the server.  So this hides weights from a server that follows the protocol, not from
one that hands out keys of its own.  Weights that nobody sees cannot be checked, either: one client can spoil the mean.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.common import Code, FitRes, Status, bytes_to_ndarray, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key
from flwr.compat.common.recorddict_compat import arrayrecord_to_parameters, fitres_to_recorddict
from flwr.server import LegacyContext, SimpleClientManager
from flwr.server.compat.grid_client_proxy import GridClientProxy
from flwr.server.strategy import FedAvg
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD
from flwr.server.workflow.constant import Key as WorkflowKey
from flwr.serverapp import Grid

from feddep.deployment import DeploymentError
from feddep.deployment.remote_client import Courier, sentence_of
from feddep.federation.boundary import Payload
from feddep.federation.client import Update
from feddep.federation.communication import CommunicationLog
from feddep.federation.server import Server

KIND = "secure aggregation"
"""The kind of all messages of the workflow: keys, shares, masked weights, and 8 bytes for all else."""

CLIP = 8.0
"""Clients with larger weights than this refuse to send them."""

LEVELS = 2**22
"""Into so many levels the numbers from −CLIP to CLIP are rounded; the sum of up to 1,024 clients fits into 32 bits."""


def masked_reply(weights: Payload, nodes: int, draws: np.random.Generator) -> RecordDict:
    """What a client gives Flower's mod to mask: its weights in the order of their names, and how much they count.

    Raises:
        DeploymentError: if a weight is not finite or larger than :data:`CLIP`.
    """
    for name, tensor in weights.items():
        if not (tensor.abs() <= CLIP).all():
            raise DeploymentError(f"secure aggregation takes weights from -{CLIP:g} to {CLIP:g}, but {name} has others")
    np.random.seed(int(draws.integers(2**32)))  # noqa: NPY002 - Flower rounds with draws of this generator
    parameters = ndarrays_to_parameters([weights[name].numpy() for name in sorted(weights)])
    return fitres_to_recorddict(FitRes(Status(Code.OK, "kept"), parameters, nodes, {}), keep_input=False)


class SecureServer(Server):
    """A server that is given no client's weights: it has SecAgg+ compute their mean."""

    def __init__(
        self,
        weights: Payload,
        client_weights: str,
        grid: Grid,
        context: Context,
        courier: Courier,
        facts: Mapping[str, Any],
        communication: CommunicationLog,
    ) -> None:
        """Start from initial ``weights``.

        Args:
            weights: the initial weights.
            client_weights: what a client counts in the mean.
            grid: Flower's way to the SuperNodes.
            context: the ServerApp's.
            courier: knows which SuperNode is which client, and how long to wait.
            facts: what clients are told with each message.
            communication: counts what the workflow sends.
        """
        super().__init__(weights, client_weights)
        self._grid = grid
        self._context = context
        self._courier = courier
        self._facts = facts
        self._ledger = communication

    def aggregate(self, updates: Sequence[Update]) -> None:
        """Replace the weights by the mean of what the clients keep; those of ``updates`` are empty.

        Raises:
            DeploymentError: if a client does not answer, fails, or sends something else than masked weights.
        """
        sizes = self.shares(updates)
        when, nodes = self._courier.when, self._courier.nodes
        shapes = [(1,), *(tuple(self.weights[name].shape) for name in sorted(self.weights))]
        watched = _WatchedGrid(self._grid, {node: client for client, node in nodes.items()}, shapes, self._ledger, when)
        config = {**self._facts, "round": self._courier.round}
        strategy = FedAvg(
            fraction_evaluate=0.0,
            min_fit_clients=len(sizes),
            min_available_clients=len(sizes),
            on_fit_config_fn=lambda number: dict(config),
        )
        context = LegacyContext(self._context, strategy=strategy, client_manager=SimpleClientManager())
        for node in nodes.values():
            context.client_manager.register(GridClientProxy(node, self._grid, context.run_id))
        context.state = RecordDict()
        context.state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({WorkflowKey.CURRENT_ROUND: self._courier.round})
        context.state.array_records[MAIN_PARAMS_RECORD] = ArrayRecord()
        workflow = SecAggPlusWorkflow(
            num_shares=1.0,
            reconstruction_threshold=1.0,
            max_weight=max(sizes),
            clipping_range=CLIP,
            quantization_range=LEVELS,
            timeout=self._courier.patience,
        )
        workflow(cast(Grid, watched), context)
        found = parameters_to_ndarrays(
            arrayrecord_to_parameters(context.state.array_records[MAIN_PARAMS_RECORD], keep_input=True)
        )
        if not found:
            raise DeploymentError(f"secure aggregation {when} ended without a mean, and the run stops")
        mean = dict(zip(sorted(self.weights), found, strict=True))
        self.weights = {name: torch.from_numpy(mean[name].astype(np.float32)) for name in self.weights}


class _WatchedGrid:
    """Flower's grid for its workflow; counts what goes through it, and stops where the workflow would go on with fewer."""

    def __init__(
        self,
        grid: Grid,
        clients: Mapping[int, int],
        shapes: Sequence[tuple[int, ...]],
        communication: CommunicationLog,
        when: str,
    ) -> None:
        """Watch ``grid``; ``clients`` are numbers by SuperNode, ``shapes`` those of masked weights."""
        self._grid = grid
        self._clients = clients
        self._shapes = list(shapes)
        self._ledger = communication
        self._when = when

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Send messages to all clients, and wait for their answers.

        Raises:
            DeploymentError: if one fails, is missing, or holds masked weights of other shapes.
        """
        sent = list(messages)
        for message in sent:
            self._count(self._clients[message.metadata.dst_node_id], "down", message.content)
        replies = list(self._grid.send_and_receive(sent, timeout=timeout))
        answered = set()
        for reply in replies:
            client = self._clients[reply.metadata.src_node_id]
            answered.add(client)
            where = f"client {client} failed in secure aggregation {self._when}"
            if reply.has_error():
                raise DeploymentError(f"{where}: {sentence_of(reply.error.reason)}")
            config = reply.content.config_records.get(RECORD_KEY_CONFIGS, ConfigRecord())
            masked = cast("list[bytes] | None", config.get(Key.MASKED_PARAMETERS))
            if masked is not None and [bytes_to_ndarray(each).shape for each in masked] != self._shapes:
                raise DeploymentError(f"{where}: it sent masked weights of other shapes than the model's, and the run stops")
            self._count(client, "up", reply.content)
        if missing := sorted(set(self._clients.values()) - answered):
            named = ", ".join(map(str, missing))
            raise DeploymentError(f"{named} did not answer in secure aggregation {self._when}; the run stops")
        return replies

    def _count(self, client: int, direction: str, content: RecordDict) -> None:
        values = [value for record in content.config_records.values() for value in record.values()]
        each = [item for value in values for item in (value if isinstance(value, list) else [value])]
        self._ledger.count(client, direction, KIND, sum(len(item) if isinstance(item, bytes) else 8 for item in each))
