"""FedGNN: subgraphs expanded by a third party, noise on what clients learn (Wu et al., 2021 and 2022).

Source: "A federated graph neural network framework for privacy-preserving personalization" (Nature Communications 13, 3091;
arXiv 2102.04925 as FedGNN).  There a client is one user with the items that it rated.  Clients send encrypted names of their
items and the user's embedding to a third party, which matches names that it cannot read and gives each client the embeddings
of anonymous users with an item in common.  These join the client's graph and stay fixed while it trains.  What a client
sends to the server is clipped, and gets noise added.

Here a client is a subgraph, and what it lacks are neighbours of its nodes at other clients, so that

* a name stands for a node, and a client knows the names of its nodes' neighbours elsewhere: it could not match them otherwise;
* an embedding of a node is what the classifier's convolutions read of it (:mod:`feddep.baselines.expansion`), also for the
  first one, whose features are sent as their image under its weights.  Given to clients, it makes their convolutions those of
  the global graph, but for the steps of a round in which the weights move away from those it was computed with;
* embeddings are renewed every round, as the authors' code does in every epoch.  The source leaves neighbours out for the first
  2 epochs, as its embeddings of users start at random; these here start from features, and are used from the start;
* pseudo interacted items, which hide from the server whose embeddings have a gradient, have no counterpart: all weights of the
  classifier have one;
* the noise is that of FedDEP, Gaussian with σ = 2 ("DPSGD with noise injection"), not Laplace noise; see ``noised`` below and
  docs/frameworks.md for what else it may mean, and what that does.

Embeddings, and the loss and the numbers of correct answers that clients report, are neither clipped nor noised.

Assumes: trusted third party; cross-client edges known; node embeddings shared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from feddep import seeding
from feddep.baselines.border import Border, borders
from feddep.baselines.expansion import ExpandedSubgraph, level_widths, new_expanded_model
from feddep.baselines.noisy_client import NoisyClient, noise_generator
from feddep.baselines.rounds import averaging_with_exchange
from feddep.baselines.routing import Router, embedding_kinds, exchange
from feddep.federation.boundary import Boundary, Schema, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.server import Server
from feddep.history import History
from feddep.privacy.dpsgd import Privacy, PrivateLearner
from feddep.problem import Outcome, Problem
from feddep.splits import Split
from feddep.training import Learner

TITLE = "FedGNN"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters:
    """The framework's own parameters.

    Attributes:
        noised: what is clipped to length C = ``clip``, and gets Gaussian noise of standard deviation σC.  ``step``: the
            gradient of every training node in every step, by DP-SGD, which FedDEP names.  ``update``: what a client has
            changed in a round, all weights together, as the source protects what is sent.  ``share``: the same, but with
            noise of σC/n for a client of n training nodes, as if one node had a share of 1/n in the change (NbAFL, Wei et al.,
            2020; an assumption, not a bound).
        sigma: noise multiplier σ.  FedDEP: 2.0 (Section 4.1).  The source's strength of noise is twice its clipping threshold.
        clip: clipping norm C.  The source's 0.1 is for another loss; ours, the best of 1, 2, 3, 4 and 8 on the validation nodes
            of Cora with 5 clients and seed 0 for ``step``.
        refresh: rounds between two exchanges of embeddings.  Authors' code: 1 epoch; paper: exchanged once.
    """

    noised: Literal["step", "update", "share"] = "step"
    sigma: float = 2.0
    clip: float = 2.0
    refresh: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: naming the parameter and what it must be.
        """
        Privacy(self.sigma, self.clip)
        if self.noised not in ("step", "update", "share"):
            raise ValueError(f"noised is {self.noised!r}; it must be step, update or share")
        if self.refresh < 1:
            raise ValueError(f"refresh is {self.refresh}; it must be at least 1")


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """FedGNN from top to bottom."""
    parts, outer = problem.subgraphs(), borders(problem)
    levels = range(problem.setting.layers)
    model = problem.new_model()
    kinds = {**name_kinds(outer), **embedding_kinds(outer, level_widths(model, levels))}
    boundary = Boundary({"model": schema_of(model), **REPORTS, **kinds})
    server = Server(model.state_dict())
    subgraphs = [ExpandedSubgraph(problem, graph, border, levels) for (graph, _), border in zip(parts, outer, strict=True)]
    clients = [
        new_client(problem, parameters, i, subgraph, split, boundary)
        for i, (subgraph, (_, split)) in enumerate(zip(subgraphs, parts, strict=True))
    ]
    third_party = match(problem, boundary, outer)
    history = History()

    def expand(done: int) -> None:
        if done % parameters.refresh == 0:
            model.load_state_dict(server.weights)
            exchange(boundary, third_party, model, subgraphs, levels)

    def on_round(loss: float, validation: float) -> None:
        model.load_state_dict(server.weights)
        history.record(model, loss, validation, problem.test(model))

    averaging_with_exchange(server, clients, problem.rounds(), expand, on_round)
    return Outcome([history], boundary.ledger.rows())


def new_client(
    problem: Problem, parameters: Parameters, number: int, subgraph: ExpandedSubgraph, split: Split, boundary: Boundary
) -> Client:
    """A client that trains on its expanded subgraph, with the noise that the parameters ask for."""
    setting, seed, device = problem.setting, problem.seed, problem.device
    model = new_expanded_model(problem, range(setting.layers))
    table: Any = subgraph.table
    trains_on = (subgraph.wide, split.train, setting, seed, f"client{number}", device, table)
    rest = (subgraph, split.val, setting, boundary)
    if parameters.noised == "step":
        learner = PrivateLearner(*trains_on, privacy=Privacy(parameters.sigma, parameters.clip))
        return Client(number, model, learner, *rest)
    share = 1 / max(len(split.train), 1) if parameters.noised == "share" else 1
    privacy = Privacy(parameters.sigma * share, parameters.clip)
    noise = noise_generator(seed, number, device)
    return NoisyClient(number, model, Learner(*trains_on), *rest, privacy=privacy, noise=noise)


def match(problem: Problem, boundary: Boundary, outer: Sequence[Border]) -> Router:
    """Let the third party find out whose embeddings go to whom, from names that it cannot read.

    A node's name is a random number, the same at every client: it stands for a deterministic encryption under a key that all
    clients have and the third party has not.
    """
    names = torch.from_numpy(seeding.generator(problem.seed, "names").random(problem.graph.num_nodes))
    received = []
    for i, border in enumerate(outer):
        sent = {"own": names[border.nodes[border.boundary]], "elsewhere": names[border.outside]}
        received.append(boundary.cross(i, "up", names_of(i), sent) if len(border.outside) else sent)
    return Router([each["own"].numpy() for each in received], [each["elsewhere"].numpy() for each in received])


def names_of(client: int) -> str:
    """The kind of message with the names of a client's nodes that have neighbours elsewhere, and of those neighbours."""
    return f"encrypted names from client {client}"


def name_kinds(outer: Sequence[Border]) -> dict[str, Schema]:
    """What the messages with names hold."""
    return {names_of(i): {"own": (len(border.boundary),), "elsewhere": (len(border.outside),)} for i, border in enumerate(outer)}
