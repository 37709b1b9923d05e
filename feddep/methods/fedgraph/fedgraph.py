"""FedGraph: convolution across clients on hidden embeddings, and a learned sampling policy (Chen et al., 2021).

Source: "FedGraph: Federated graph learning with intelligent sampling" (IEEE TPDS 33(8); arXiv 2111.01370), and its authors'
code where the paper's text was not at hand.

* *Cross-client convolution.*  Clients know which of their nodes have neighbours elsewhere.  The first convolution takes a
  client's own nodes only, so that no features are shared.  All others also take neighbours at other clients, whose hidden
  embeddings are received through the server.
* *Sampling policy.*  In every round an agent at the server chooses how many neighbours each client draws in each layer.  Its
  state are the clients' weights, brought to M numbers a client by principal components; its reward is
  64^(accuracy − target) − 1, less a price for the time that sampling takes.  It learns by DDPG, in a training of its own before
  the one that counts, in which it acts without exploring.

Decided here:

* embeddings are computed once a round, with the weights that the server has sent, and stay fixed in the round;
* the largest fan-out is that of the setting, as for every other method of the table (authors' code: 25);
* accuracy is that of the clients' validation nodes, which clients report anyway (authors' code: the server's own test data);
* time is taken by the number of places of a sampled tree, which is the same in every run;
* the state is taken from the weights as clients send them (the code takes it after they have all been replaced by the mean,
  which leaves nothing to tell them apart);
* what crosses boundaries while the agent practises counts like everything else.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from feddep.federation.averaging import federated_averaging, local_test
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.server import Server
from feddep.methods.fedgraph import FedGraphParameters
from feddep.methods.fedgraph.ddpg import Ddpg, Learning
from feddep.methods.fedgraph.policy import fanouts_of, reward, summary, work
from feddep.methods.shared.cross_edges import cross_edges
from feddep.methods.shared.expansion import ExpandedSubgraph, level_widths, new_expanded_model
from feddep.methods.shared.routing import Router, embedding_kinds, exchange
from feddep.training.history import History
from feddep.training.learner import Learner
from feddep.training.task import RunResult, Task


def run(task: Task, parameters: FedGraphParameters, steps: Any = None) -> RunResult:
    """Let the agent practise, then train with what it has learned."""
    clients = len(task.subgraphs())
    agent = Ddpg(clients**2, clients * task.setting.layers, Learning(), task.seed)
    edges, model, levels = cross_edges(task), task.new_sage(), range(1, task.setting.layers)
    kinds = {"policy": {"shares": (task.setting.layers,)}, **embedding_kinds(edges, level_widths(model, levels))}
    boundary = Boundary({"model": schema_of(model), **REPORTS, **kinds}, task.observers)
    for episode in range(parameters.episodes):
        train(task, parameters, boundary, agent, f"practice{episode} ")
    return RunResult([train(task, parameters, boundary, agent)], boundary.communication.rows())


def train(task: Task, parameters: FedGraphParameters, boundary: Boundary, agent: Ddpg, practice: str = "") -> History:
    """One training; returns its history, which is empty for a practice.

    The agent chooses the fan-outs; it explores and learns in a practice, whose random streams the name ``practice`` sets apart.
    """
    setting, levels = task.setting, range(1, task.setting.layers)
    model, edges = task.new_sage(), cross_edges(task)
    server = Server(model.state_dict())
    subgraphs, learners, clients = [], [], []
    for i, ((graph, split), own) in enumerate(zip(task.subgraphs(), edges, strict=True)):
        subgraph = ExpandedSubgraph(task, graph, own, levels)
        # The roots' hop belongs to the last convolution, and stand-ins take no part in the first.
        graphs = [subgraph.wide if k in levels else subgraph.narrow for k in reversed(range(setting.layers))]
        name = f"{practice}client{i}"
        learner = Learner(graphs, split.train, setting, task.seed, name, task.device, subgraph.table)
        clients.append(Client(i, new_expanded_model(task, levels), learner, subgraph, split, setting, boundary))
        subgraphs.append(subgraph)
        learners.append(learner)
    router = Router([own.nodes[own.endpoints] for own in edges], [own.outside for own in edges])
    history = History()
    state, action = np.zeros(len(clients) ** 2), np.zeros(0)

    def rounds() -> Iterator[int]:
        nonlocal action
        for number in task.rounds():
            action = agent.act(state, explore=bool(practice))
            for i, chosen in enumerate(torch.from_numpy(action).view(len(clients), -1)):
                shares = boundary.send(i, "down", "policy", {"shares": chosen})["shares"]
                learners[i].fanouts = fanouts_of(shares.numpy(), setting.fanout)
            yield number

    def share_embeddings(done: int) -> None:
        model.load_state_dict(server.weights)
        exchange(boundary, router, model, subgraphs, levels)

    measured = federated_averaging(server, clients, rounds(), share_embeddings, setting.client_weights)
    for loss, validation in measured:
        following = summary(server.updates)
        if practice:
            cost = float(np.mean([work(learner.fanouts, setting.fanout) for learner in learners]))
            agent.remember(state, action, reward(validation, parameters.target, cost, parameters.cost_weight), following)
            for _ in range(parameters.updates):
                agent.learn()
        else:
            model.load_state_dict(server.weights)
            history.record(model, loss, validation, *task.test(model), local_test(clients))
        state = following
    return history
