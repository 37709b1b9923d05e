"""Training of FedStruct and FedLap: a classifier with a structure model beside it, trained by
federated SGD.

Client k predicts

    O_k = f(X_k, A_k) + g(M_k, S),

where f is the setting's encoder on its own subgraph, g a multilayer perceptron on structure
features, and M_k the client's rows of a constant matrix of the global graph, which it gets before
training.  S is learned, and the same at all clients.

In each step a client sends the gradient of its loss by all weights and by S.  The server takes a
step of the setting's optimiser, whose moments it keeps, with the mean of the gradients (FedSGD:
McMahan et al., 2017), and sends what comes of it.  A round is as many steps as the setting has
local epochs; each crosses the boundary.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, Payload, Schema, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.server import Server
from feddep.methods.basic.fedavg import new_client
from feddep.nn.dropout import drop
from feddep.nn.linear import Linear
from feddep.nn.sparse import SparseMatrix
from feddep.training.config import TrainingConfig
from feddep.training.learner import SGD, new_optimizer
from feddep.training.task import RunResult, Task

START = 0.05
"""Standard deviation of the initial structure features (code)."""


class StructureModel(nn.Module, ABC):
    """A classifier f, and beside it g of learned structure features S.

    Attributes:
        encoder: f, the setting's encoder with the run's initial weights.
        structure: S, shape (rows, d).
        matrix: the rows of a constant matrix that belong to the nodes that are classified, shape
            (n, rows); not a weight.
    """

    def __init__(self, task: Task, matrix: Tensor, width: int) -> None:
        """Draw initial weights: a normalisation of S, a hidden layer of the setting's width and one
        for the classes.
        """
        super().__init__()
        classes = task.graph.num_classes
        self.dropout = task.setting.dropout
        generator = task.torch_generator("structure")
        self.encoder, self.matrix = task.new_model(), matrix.to(task.device)
        self.aggregation = self.encoder.aggregation
        self.structure = nn.Parameter(
            START * torch.randn(matrix.shape[1], width, generator=generator)
        )
        self.norm = nn.LayerNorm(width)
        self.hidden = Linear(width, task.setting.hidden_channels)
        self.output = Linear(task.setting.hidden_channels, classes)
        for layer in (self.hidden, self.output):
            layer.reset_parameters(generator)
        self.to(task.device)

    @abstractmethod
    def structure_logits(self, generator: torch.Generator | None) -> Tensor:
        """Outputs of g, shape (n, C)."""

    def perceptron(self, features: Tensor, generator: torch.Generator | None) -> Tensor:
        """A multilayer perceptron of rows that are normalised (Ba et al., 2016), shape (rows,
        C).
        """
        return self.output(drop(self.hidden(self.norm(features)).relu(), self.dropout, generator))

    def full(
        self,
        x: Any,
        adjacency: SparseMatrix,
        z: Any = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Logits O of all nodes, shape (n, C); the arguments are those of
        :meth:`feddep.nn.encoders.LayeredEncoder.full`.
        """
        return self.encoder.full(x, adjacency, generator=generator) + self.structure_logits(
            generator
        )


class GradientClient(Client):
    """A client that sends the gradient of its loss in place of weights, and takes no step."""

    def train(self) -> float:
        return self.learner.epoch(self.model, SGD(self.model.parameters(), lr=0.0))

    def weights(self) -> Payload:
        """The gradient by name; 0 of a client without training nodes."""
        return {
            name: torch.zeros_like(weight) if weight.grad is None else weight.grad
            for name, weight in self.model.named_parameters()
        }


class GradientServer(Server):
    """A server that takes a step with the mean of the clients' gradients."""

    def __init__(self, model: nn.Module, setting: TrainingConfig) -> None:
        super().__init__(model.state_dict(), setting.client_weights)
        self._model, self._optimizer = model, new_optimizer(model, setting)

    def server_step(self, mean: Payload) -> Payload:
        for name, weight in self._model.named_parameters():
            weight.grad = mean[name]
        self._optimizer.step()
        return {name: weight.detach().clone() for name, weight in self._model.named_parameters()}


def train(
    task: Task,
    boundary: Boundary,
    matrices: Sequence[Tensor],
    new_model: Callable[[Tensor], StructureModel],
    regularizer: Callable[[Any], Tensor] | None = None,
) -> RunResult:
    """FedSGD of structure models.

    Args:
        task: the task.
        boundary: that of the clients, with the messages of :func:`kinds`.
        matrices: each client's rows of the constant matrix.
        new_model: makes a model with the run's initial weights for such rows.
        regularizer: from a model to a number that is added to each client's loss.
    """
    whole = torch.empty(task.graph.num_nodes, matrices[0].shape[1])
    clients: list[Client] = []
    for i, (part, matrix) in enumerate(zip(task.subgraphs(), matrices, strict=True)):
        whole[task.ownership.nodes(i)] = matrix
        clients.append(new_client(task, i, part, boundary, GradientClient, new_model(matrix)))
        clients[-1].learner.regularizer = regularizer
    server = GradientServer(new_model(matrices[0][:0]), task.setting)

    def further_steps() -> None:
        for _ in range(task.setting.local_epochs - 1):
            server.aggregate([client.update() for client in clients])
            for client in clients:
                client.load(server.weights)

    return train_federated(
        task, new_model(whole), boundary, clients, server=server, before_round=further_steps
    )


def kinds(model: StructureModel) -> dict[str, Schema]:
    """The messages of :func:`train`."""
    return {"model": schema_of(model), **REPORTS}
