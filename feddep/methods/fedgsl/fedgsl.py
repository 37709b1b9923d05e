"""FedGSL: subgraphs augmented by learned edges to noised embeddings of other clients' nodes (Zhao, Huang and Tsai, 2022).

Source: "FedGSL: Federated graph structure learning for local subgraph augmentation" (IEEE Big Data 2022).  Its text was not at
hand: this is a reconstruction from its title, from what FedDEP says of it (it augments subgraphs by what it retrieves across
clients, and injects noise to protect what is shared, without a further authority), and from metric-based graph structure
learning (IDGL: Chen, Wu and Zaki, 2020), the kind of structure learning that needs nothing but embeddings.

1. Each client embeds its nodes with the shared classifier, scales every embedding to length 1, adds noise and sends it.  The
   server passes it on to all other clients.
2. Each node retrieves the k embeddings most similar to its own among those of other clients: its learned edges.
3. The classifier's last convolution aggregates over real and learned edges (:mod:`feddep.methods.fedgsl.structure`).  The
   weights of learned edges come from a metric that clients train with the classifier, and the server averages with it.

1 and 2 are repeated every few rounds.  The global graph is classified with its own edges alone, as for every method.
No client needs to know that an edge to another client exists.
"""

from typing import Any

import torch
from torch import Tensor

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.methods.fedgsl import FedGSLParameters
from feddep.methods.fedgsl.structure import LearnedStructure, StructureSAGE, unit
from feddep.training.learner import Learner
from feddep.training.task import RunResult, Task
from feddep.utils import seeding
from feddep.utils.errors import ConfigError


def run(task: Task, parameters: FedGSLParameters, steps: Any = None) -> RunResult:
    """FedGSL from top to bottom.

    Raises:
        ConfigError: if the classifier has a single layer, so that there is nothing to send but features.
    """
    setting, seed, device = task.setting, task.seed, task.device
    if setting.layers < 2:
        raise ConfigError(f"layers is {setting.layers}; FedGSL shares inputs of the last of at least 2 layers")
    parts, model = task.subgraphs(), new_model(task, parameters)
    kinds = {embeddings_of(i): {"embeddings": (graph.num_nodes, setting.hidden_channels)} for i, (graph, _) in enumerate(parts)}
    boundary = Boundary({"model": schema_of(model), **REPORTS, **kinds}, task.observers)
    structures = [LearnedStructure(graph, device) for graph, _ in parts]
    clients = []
    for i, ((graph, split), structure) in enumerate(zip(parts, structures, strict=True)):
        learner = Learner(graph, split.train, setting, seed, f"client{i}", device, structure.table)
        clients.append(Client(i, new_model(task, parameters), learner, structure, split, setting, boundary))
    noises = [seeding.torch_generator(seed, f"client{i}", "noise", device=device) for i in range(len(parts))]

    def retrieve(done: int) -> None:
        if done % parameters.refresh:
            return
        sent = []
        for i, (structure, noise) in enumerate(zip(structures, noises, strict=True)):
            message = {"embeddings": noised(structure.embed(model), parameters.noise, noise)}
            sent.append(boundary.send(i, "up", embeddings_of(i), message))
        for i, structure in enumerate(structures):
            received = [boundary.send(i, "down", embeddings_of(j), message) for j, message in enumerate(sent) if j != i]
            structure.retrieve(model, [message["embeddings"] for message in received], parameters.edges)

    return train_federated(task, model, boundary, clients, exchange=retrieve)


def new_model(task: Task, parameters: FedGSLParameters) -> StructureSAGE:
    """The classifier with the run's initial weights, and the plain cosine for a metric."""
    model = StructureSAGE(*task.model_sizes, share=parameters.share)
    model.reset_parameters(task.torch_generator("weights"))
    return model.to(task.device)


def noised(embeddings: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Rows of length 1 plus Gaussian noise whose length is ``noise`` as root mean square, shape (n, H)."""
    rows = unit(embeddings)
    return rows + noise / rows.shape[1] ** 0.5 * torch.empty_like(rows).normal_(generator=generator)


def embeddings_of(client: int) -> str:
    """The kind of message that carries a client's embeddings, up and down."""
    return f"embeddings of client {client}"
