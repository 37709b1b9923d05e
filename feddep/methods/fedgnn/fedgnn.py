"""FedGNN: subgraphs expanded by a third party, noise on what clients learn (Wu et al., 2021 and
2022).

Source: "A federated graph neural network method for privacy-preserving personalization" (Nature
Communications 13, 3091; arXiv 2102.04925 as FedGNN).  There a client is one user with the items
that it rated.  Clients send encrypted names of their items and the user's embedding to a third
party, which matches names that it cannot read and gives each client the embeddings of anonymous
users with an item in common.  These join the client's graph and stay fixed while it trains.  What a
client sends to the server is clipped, and gets noise added.

Here a client is a subgraph, and what it lacks are neighbours of its nodes at other clients, so that

* a name stands for a node, and a client knows the names of its nodes' neighbours elsewhere: it
    could not match them otherwise;
* an embedding of a node is what the classifier's convolutions read of it
  (:mod:`feddep.methods.shared.expansion`), also for the first one, whose features are sent as their
  image under its weights.  Given to clients, it makes their convolutions those of the global graph,
  but for the steps of a round in which the weights move away from those it was computed with;
* embeddings are renewed every round, as the authors' code does in every epoch.  The source leaves
  neighbours out for the first 2 epochs, as its embeddings of users start at random; these here
  start from features, and are used from the start;
* pseudo interacted items, which hide from the server whose embeddings have a gradient, have no
  counterpart: all weights of the classifier have one;
* the noise is that of FedDEP, DP-SGD with Gaussian noise of σ = 2 ("DPSGD with noise injection"):
  in every step the gradient of each training node is clipped, and the sum noised.  The source adds
  Laplace noise to what a client sends.

Embeddings, and the loss and the numbers of correct answers that clients report, are neither clipped
nor noised.
"""

from typing import Any

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.graph.split import Split
from feddep.methods.fedgnn import FedGNNParameters
from feddep.methods.shared.cross_edges import cross_edges
from feddep.methods.shared.expansion import ExpandedSubgraph, level_widths, new_expanded_model
from feddep.methods.shared.routing import embedding_kinds, exchange, match, name_kinds
from feddep.privacy.dpsgd import Privacy, PrivateLearner
from feddep.training.task import RunResult, Task


def run(task: Task, parameters: FedGNNParameters, steps: Any = None) -> RunResult:
    """FedGNN from top to bottom."""
    parts, edges = task.subgraphs(), cross_edges(task)
    levels = range(task.setting.layers)
    model = task.new_sage()
    boundary = Boundary(
        {
            "model": schema_of(model),
            **REPORTS,
            **name_kinds(edges),
            **embedding_kinds(edges, level_widths(model, levels)),
        },
        task.observers,
    )
    subgraphs = [
        ExpandedSubgraph(task, graph, own, levels)
        for (graph, _), own in zip(parts, edges, strict=True)
    ]
    clients = [
        new_client(task, parameters, i, subgraph, split, boundary)
        for i, (subgraph, (_, split)) in enumerate(zip(subgraphs, parts, strict=True))
    ]
    third_party = match(task, boundary, edges)

    def expand(done: int) -> None:
        if done % parameters.refresh == 0:
            exchange(boundary, third_party, model, subgraphs, levels)

    return train_federated(task, model, boundary, clients, exchange=expand)


def new_client(
    task: Task,
    parameters: FedGNNParameters,
    number: int,
    subgraph: ExpandedSubgraph,
    split: Split,
    boundary: Boundary,
) -> Client:
    """A client that trains on its expanded subgraph by DP-SGD."""
    learner = PrivateLearner(
        subgraph.wide,
        split.train,
        task.setting,
        task.seed,
        f"client{number}",
        task.device,
        subgraph.table,
        privacy=Privacy(parameters.sigma, parameters.clip),
    )
    model = new_expanded_model(task, range(task.setting.layers))
    return Client(number, model, learner, subgraph, split, task.setting, boundary)
