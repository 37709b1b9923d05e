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
* the largest fan-out is that of the setting, as for every other framework of the table (authors' code: 25);
* accuracy is that of the clients' validation nodes, which clients report anyway (authors' code: the server's own test data);
* time is taken by the number of places of a sampled tree, which is the same in every run;
* the state is taken from the weights as clients send them (the code takes it after they have all been replaced by the mean,
  which leaves nothing to tell them apart);
* what crosses borders while the agent practises counts like everything else.

Assumes: cross-client edges known; node embeddings shared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from feddep.baselines.border import borders
from feddep.baselines.ddpg import Ddpg, Learning
from feddep.baselines.expansion import ExpandedSubgraph, level_widths, new_expanded_model
from feddep.baselines.layerwise import LayerwiseLearner
from feddep.baselines.policy import fanouts_of, reward, summary, work
from feddep.baselines.rounds import averaging_with_exchange
from feddep.baselines.routing import Router, embedding_kinds, exchange
from feddep.federation.boundary import Boundary, Payload, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.federation.server import Server
from feddep.history import History
from feddep.problem import Outcome, Problem

TITLE = "FedGraph"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters:
    """The framework's own parameters.

    Attributes:
        episodes: trainings in which the agent practises.  Authors' code: 1.  Without any, it keeps to what it starts with.
        updates: learning steps of the agent after each round of practice.  Authors' code: 1, in 200 rounds; ours, as there are
            50.
        target: accuracy that the reward is measured from.  Authors' code: 0.72 to 0.99, by dataset; ours: one for all.
        cost_weight: price of the largest fan-out everywhere, in units of reward.  Ours; near the target, 0.1 is worth as much
            as 0.024 of accuracy.
    """

    episodes: int = 1
    updates: int = 8
    target: float = 0.9
    cost_weight: float = 0.1

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: naming the parameter and what it must be.
        """
        for name in ("episodes", "updates", "cost_weight"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 0")
        if not 0 < self.target <= 1:
            raise ValueError(f"target is {self.target}; it must be above 0 and at most 1")


class WatchedServer(Server):
    """A server that keeps what it has aggregated last, for the agent to see."""

    updates: Sequence[Payload] = ()

    def aggregate(self, updates: Sequence[Payload], sizes: Sequence[float]) -> None:
        """Replace the weights by the mean of the clients' weights, and keep those."""
        self.updates = updates
        super().aggregate(updates, sizes)


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """Let the agent practise, then train with what it has learned."""
    clients = len(problem.subgraphs())
    agent = Ddpg(clients**2, clients * problem.setting.layers, Learning(), problem.seed)
    outer, model, levels = borders(problem), problem.new_model(), range(1, problem.setting.layers)
    kinds = {"policy": {"shares": (problem.setting.layers,)}, **embedding_kinds(outer, level_widths(model, levels))}
    boundary = Boundary({"model": schema_of(model), **REPORTS, **kinds})
    for episode in range(parameters.episodes):
        train(problem, parameters, boundary, agent, f"practice{episode} ")
    return Outcome([train(problem, parameters, boundary, agent)], boundary.ledger.rows())


def train(problem: Problem, parameters: Parameters, boundary: Boundary, agent: Ddpg, practice: str = "") -> History:
    """One training; returns its course, which is empty for a practice.

    Args:
        problem: the run.
        parameters: the framework's parameters.
        boundary: the clients' border.
        agent: chooses the fan-outs; it explores and learns if it is a practice.
        practice: sets the random streams of a practice apart.
    """
    setting, levels = problem.setting, range(1, problem.setting.layers)
    model, outer = problem.new_model(), borders(problem)
    server = WatchedServer(model.state_dict())
    subgraphs, learners, clients = [], [], []
    for i, ((graph, split), border) in enumerate(zip(problem.subgraphs(), outer, strict=True)):
        subgraph = ExpandedSubgraph(problem, graph, border, levels)
        learner = LayerwiseLearner(problem, subgraph, split.train, levels, f"{practice}client{i}")
        clients.append(Client(i, new_expanded_model(problem, levels), learner, subgraph, split.val, setting, boundary))
        subgraphs.append(subgraph)
        learners.append(learner)
    router = Router([border.nodes[border.boundary] for border in outer], [border.outside for border in outer])
    history = History()
    state, action = np.zeros(len(clients) ** 2), np.zeros(0)

    def rounds() -> Iterator[int]:
        nonlocal action
        for number in problem.rounds():
            action = agent.act(state, explore=bool(practice))
            for i, chosen in enumerate(torch.from_numpy(action).view(len(clients), -1)):
                shares = boundary.cross(i, "down", "policy", {"shares": chosen})["shares"]
                learners[i].fanouts = fanouts_of(shares.numpy(), setting.fanout)
            yield number

    def share_embeddings(done: int) -> None:
        model.load_state_dict(server.weights)
        exchange(boundary, router, model, subgraphs, levels)

    def on_round(loss: float, validation: float) -> None:
        nonlocal state
        following = summary(server.updates)
        if practice:
            cost = float(np.mean([work(learner.fanouts, setting.fanout) for learner in learners]))
            agent.remember(state, action, reward(validation, parameters.target, cost, parameters.cost_weight), following)
            for _ in range(parameters.updates):
                agent.learn()
        else:
            model.load_state_dict(server.weights)
            history.record(model, loss, validation, problem.test(model))
        state = following

    averaging_with_exchange(server, clients, rounds(), share_embeddings, on_round)
    return history
