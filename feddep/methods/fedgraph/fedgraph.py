"""FedGraph: convolution across clients on hidden embeddings, and a learned sampling policy (Chen et
al., 2021).

Source: "FedGraph: Federated graph learning with intelligent sampling" (IEEE TPDS 33(8); arXiv
2111.01370), and its authors' code where the paper's text was not at hand.

* *Cross-client convolution.*  Clients know which of their nodes have neighbours elsewhere.  The
  first convolution takes a client's own nodes only, so that no features are shared.  All others
  also take neighbours at other clients, whose hidden embeddings are received through the server.
* *Sampling policy.*  In every round an agent at the server chooses how many neighbours each client
  draws in each layer.  Its state are the clients' weights, brought to M numbers a client by
  principal components; its reward is 64^(accuracy − target) − 1, less a price for the time that
  sampling takes.  It learns by DDPG, in a training of its own before the one that counts, in which
  it acts without exploring.

Decided here:

* embeddings are computed once a round, with the weights that the server has sent, and stay fixed in
    the round;
* the largest fan-out is that of the setting, as for every other method of the table (authors' code:
    25);
* accuracy is that of the clients' validation nodes, which clients report anyway (authors' code: the
    server's own test data);
* time is taken by the number of nodes of a sampled tree, which is the same in every run;
* the state is taken from the weights as clients send them (the code takes it after they have all
  been replaced by the mean, which leaves nothing to tell them apart);
* what crosses boundaries while the agent practises counts like everything else;
* in full batches nothing is sampled: there is no agent, and cross-client convolution, by a GCN too,
  is all that is left.  For a GCN's global normalisation clients are told degrees.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from feddep.federation.averaging import Exchange, train_federated
from feddep.federation.boundary import Boundary, Payload, schema_of
from feddep.federation.client import REPORTS, Client, Update
from feddep.federation.server import Server
from feddep.methods.fedgraph import FedGraphParameters
from feddep.methods.fedgraph.ddpg import Ddpg, Learning
from feddep.methods.shared.cross_edges import cross_edges
from feddep.methods.shared.expansion import level_widths, new_expanded_model
from feddep.methods.shared.routing import (
    DEGREES,
    Router,
    embedding_kinds,
    exchange,
    expanded_subgraphs,
    share_kinds,
)
from feddep.training.evaluation import GlobalAccuracy
from feddep.training.learner import new_learner
from feddep.training.task import RunResult, Task


def run(task: Task, parameters: FedGraphParameters, steps: Any = None) -> RunResult:
    """Let the agent practise, then train with what it has learned."""
    clients = task.ownership.num_clients
    agent = Ddpg(clients**2, clients * task.setting.layers, Learning(), task.seed)
    edges, levels = cross_edges(task), range(1, task.setting.layers)
    model: Any = task.new_model()
    boundary = Boundary(
        {
            "model": schema_of(model),
            **REPORTS,
            "policy": {"shares": (task.setting.layers,)},
            **share_kinds(edges, DEGREES, 1),
            **embedding_kinds(edges, level_widths(model, levels)),
        },
        task.observers,
    )
    if task.setting.full_batch:
        members, share_embeddings = new_clients(task, boundary, model)
        return train_federated(task, model, boundary, members, exchange=share_embeddings)
    for episode in range(parameters.episodes):
        train(task, parameters, boundary, agent, episode)
    return train(task, parameters, boundary, agent)


class ObservingServer(Server):
    """A server that sees the agent's state in what the clients send.

    Attributes:
        state: of the agent, M² numbers; zero at first.
    """

    state: np.ndarray

    def aggregate(self, updates: Sequence[Update]) -> None:
        """Average, and look at the weights before they are replaced by their mean."""
        super().aggregate(updates)
        self.state = summary([update.weights for update in updates])


def train(
    task: Task,
    parameters: FedGraphParameters,
    boundary: Boundary,
    agent: Ddpg,
    episode: int | None = None,
) -> RunResult:
    """One training, in which the agent chooses the fan-outs.

    Args:
        task: what is trained on.
        parameters: of the method.
        boundary: between clients and server.
        agent: chooses the fan-outs of each round.
        episode: number of the practice, in which the agent explores and learns, with random streams
            of its own and without tests; None for the training that counts.
    """
    practises = episode is not None
    stream = f"practice{episode} " if practises else ""
    setting, model = task.setting, task.new_model()
    server = ObservingServer(model.state_dict(), setting.client_weights)
    clients, share_embeddings = new_clients(task, boundary, model, stream)
    learners: list[Any] = [client.learner for client in clients]
    server.state = state = np.zeros(len(clients) ** 2)
    action = np.zeros(0)

    def act() -> None:
        nonlocal state, action
        state = server.state
        action = agent.act(state, explore=practises)
        for i, chosen in enumerate(torch.from_numpy(action).view(len(clients), -1)):
            shares = boundary.send(i, "down", "policy", {"shares": chosen})["shares"]
            learners[i].fanouts = fanouts_of(shares.numpy(), setting.fanout)

    def learn(measured: dict[str, float]) -> None:
        cost = float(np.mean([work(learner.fanouts, setting.fanout) for learner in learners]))
        gained = reward(measured["validation"], parameters.target, cost, parameters.cost_weight)
        agent.remember(state, action, gained, server.state)
        for _ in range(parameters.updates):
            agent.learn()

    if practises:
        task = dataclasses.replace(task, on_round=learn)
    test = (lambda _: GlobalAccuracy()) if practises else None
    return train_federated(task, model, boundary, clients, test, share_embeddings, server, act)


def new_clients(
    task: Task, boundary: Boundary, model: Any, stream: str = ""
) -> tuple[list[Client], Exchange]:
    """Clients whose subgraphs have stand-ins, and what is exchanged when they get the weights of
    ``model``; names of random streams begin with ``stream``.
    """
    setting, levels, edges = task.setting, range(1, task.setting.layers), cross_edges(task)
    subgraphs = expanded_subgraphs(task, boundary, edges, levels)
    clients = []
    for i, subgraph in enumerate(subgraphs):
        split = task.split.restrict(edges[i].nodes)
        # The roots' hop belongs to the last convolution; stand-ins take no part in the first.
        graphs = [*[subgraph.wide] * len(levels), subgraph.narrow]
        name = f"{stream}client{i}"
        learner = new_learner(
            graphs,
            split.train,
            setting,
            task.seed,
            name,
            task.device,
            subgraph,
            subgraph.table,
        )
        own = new_expanded_model(task, levels)
        clients.append(Client(i, own, learner, subgraph, split, setting, boundary))
    router = Router([own.nodes[own.endpoints] for own in edges], [own.outside for own in edges])
    return clients, lambda done: exchange(boundary, router, model, subgraphs, levels)


def fanouts_of(action: np.ndarray, most: int) -> tuple[int, ...]:
    """Fan-outs from 1 to ``most``, one for each number from 0 to 1 in the action: ⌈a · most⌉, and 1
    for 0.
    """
    return tuple(int(fanout) for fanout in np.ceil(np.asarray(action) * most).clip(1, most))


def work(fanouts: Sequence[int], most: int) -> float:
    """Number of nodes of a sampled tree, Π (1 + f), as a share of what it is with the largest
    fan-out everywhere.

    This stands for the time that a client takes, which would differ from run to run.
    """
    return float(np.prod([(1 + fanout) / (1 + most) for fanout in fanouts]))


def reward(accuracy: float, target: float, cost: float, cost_weight: float) -> float:
    """64^(accuracy − target) − 1 − cost_weight · cost: the nearer to the target the more, and the
    less work the more.
    """
    return float(64 ** (accuracy - target)) - 1 - cost_weight * cost


def summary(weights: Sequence[Payload]) -> np.ndarray:
    """The state that the policy sees: the clients' weights by their principal components among
    clients; float64, shape (M²,).

    M vectors span at most M − 1 directions about their mean, so M components hold all that tells
    the clients apart.  They are computed from the M × M inner products.  A component is known but
    for its sign: the largest of its M scores is positive.
    """
    vectors = torch.stack(
        [torch.cat([tensor.flatten() for tensor in payload.values()]) for payload in weights]
    ).double()
    centred = vectors - vectors.mean(dim=0)
    values, components = np.linalg.eigh((centred @ centred.T).cpu().numpy())
    scores = components[:, ::-1] * np.sqrt(values[::-1].clip(0))
    largest = np.abs(scores).argmax(axis=0)
    signs = np.sign(scores[largest, np.arange(len(weights))])
    return np.asarray((scores * signs).ravel())
