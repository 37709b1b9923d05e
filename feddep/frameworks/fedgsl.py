"""FedGSL: subgraphs augmented by learned edges to noised embeddings of other clients' nodes (Zhao, Huang and Tsai, 2022).

Source: "FedGSL: Federated graph structure learning for local subgraph augmentation" (IEEE Big Data 2022).  Its text was not at
hand: this is a reconstruction from its title, from what FedDEP says of it (it augments subgraphs by what it retrieves across
clients, and injects noise to protect what is shared, without a further authority), and from metric-based graph structure
learning (IDGL: Chen, Wu and Zaki, 2020), the kind of structure learning that needs nothing but embeddings.

1. Each client embeds its nodes with the shared classifier, scales every embedding to length 1, adds noise and sends it.  The
   server passes it on to all other clients.
2. Each node retrieves the k embeddings most similar to its own among those of other clients: its learned edges.
3. The classifier's last convolution aggregates over real and learned edges (:mod:`feddep.baselines.structure`).  The weights of
   learned edges come from a metric that clients train with the classifier, and the server averages with it.

1 and 2 are repeated every few rounds.  The global graph is classified with its own edges alone, as for every framework.
No client needs to know that an edge to another client exists.

Assumes: noised node embeddings shared.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from feddep import seeding
from feddep.baselines.noisy_client import noise_generator
from feddep.baselines.rounds import averaging_with_exchange
from feddep.baselines.structure import LearnedStructure, StructureSAGE, unit
from feddep.errors import ConfigError
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.server import Server
from feddep.history import History
from feddep.problem import Outcome, Problem
from feddep.training import Learner

TITLE = "FedGSL"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters:
    """The framework's own parameters; all defaults are ours.

    Attributes:
        edges: learned edges k of a node; as many as neighbours are drawn for it in FedDEP's setting.
        share: share λ of learned edges in the mean neighbour that the last convolution reads.
        noise: length of the Gaussian noise on an embedding of length 1, as root mean square: each of its H numbers gets noise
            of standard deviation noise / √H.  FedDEP names no σ for FedGSL.
        refresh: rounds between two exchanges of embeddings.
    """

    edges: int = 5
    share: float = 0.2
    noise: float = 1.0
    refresh: int = 10

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: naming the parameter and what it must be.
        """
        for name in ("edges", "refresh"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0 <= self.share <= 1:
            raise ValueError(f"share is {self.share}; it must be from 0 to 1")
        if self.noise < 0:
            raise ValueError(f"noise is {self.noise}; it must be at least 0")


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """FedGSL from top to bottom.

    Raises:
        ConfigError: if the classifier has a single layer, so that there is nothing to send but features.
    """
    setting, seed, device = problem.setting, problem.seed, problem.device
    if setting.layers < 2:
        raise ConfigError(f"layers is {setting.layers}; FedGSL shares inputs of the last of at least 2 layers")
    parts, model = problem.subgraphs(), new_model(problem, parameters)
    kinds = {embeddings_of(i): {"embeddings": (graph.num_nodes, setting.hidden)} for i, (graph, _) in enumerate(parts)}
    boundary = Boundary({"model": schema_of(model), **REPORTS, **kinds})
    server = Server(model.state_dict())
    structures = [LearnedStructure(graph, setting.fanout, device) for graph, _ in parts]
    clients = []
    for i, ((graph, split), structure) in enumerate(zip(parts, structures, strict=True)):
        learner = Learner(graph, split.train, setting, seed, f"client{i}", device, structure)
        clients.append(Client(i, new_model(problem, parameters), learner, structure, split.val, setting, boundary))
    noises = [noise_generator(seed, i, device) for i in range(len(parts))]
    history = History()

    def retrieve(done: int) -> None:
        if done % parameters.refresh:
            return
        model.load_state_dict(server.weights)
        sent = []
        for i, (structure, noise) in enumerate(zip(structures, noises, strict=True)):
            message = {"embeddings": noised(structure.embed(model), parameters.noise, noise)}
            sent.append(boundary.cross(i, "up", embeddings_of(i), message))
        for i, structure in enumerate(structures):
            received = [boundary.cross(i, "down", embeddings_of(j), message) for j, message in enumerate(sent) if j != i]
            structure.retrieve(model, [message["embeddings"] for message in received], parameters.edges)

    def on_round(loss: float, validation: float) -> None:
        model.load_state_dict(server.weights)
        history.record(model, loss, validation, problem.test(model))

    averaging_with_exchange(server, clients, problem.rounds(), retrieve, on_round)
    return Outcome([history], boundary.ledger.rows())


def new_model(problem: Problem, parameters: Parameters) -> StructureSAGE:
    """The classifier with the run's initial weights, and the plain cosine for a metric."""
    graph, setting = problem.graph, problem.setting
    sizes = (graph.num_features, setting.hidden, graph.num_classes, setting.layers, setting.fanout, setting.dropout)
    model = StructureSAGE(*sizes, share=parameters.share)
    model.reset_parameters(torch.Generator().manual_seed(seeding.derive_seed(problem.seed, "weights")))
    return model.to(problem.device)


def noised(embeddings: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    """Rows of length 1 plus Gaussian noise whose length is ``noise`` as root mean square, shape (n, H)."""
    rows = unit(embeddings)
    return rows + noise / rows.shape[1] ** 0.5 * torch.empty_like(rows).normal_(generator=generator)


def embeddings_of(client: int) -> str:
    """The kind of message that carries a client's embeddings, up and down."""
    return f"embeddings of client {client}"
