"""GraphSAGE on the subgraphs that NeighGen has mended: FedSage+ by FedAvg, LocSage+ alone (FedSage,
Section 4 and Algorithm 1).

NeighGen is applied to the client's whole subgraph, as in the paper; the authors' code generates
neighbours of the nodes of the impaired subgraph only, from their impaired neighbourhoods.  The
global graph is not mended for the test.

With a shared NeighGen, obtained by FedAvg, the paper reports worse results than with one a client,
and than without any (Appendix D.2).
"""

from collections.abc import Mapping
from typing import Any

from feddep.federation.averaging import train_federated
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.graph.split import Split
from feddep.methods.basic.alone import train_each
from feddep.methods.fedsage.mended_subgraph import MendedSubgraph, mended_subgraphs
from feddep.methods.method import StepResult
from feddep.training.learner import new_learner
from feddep.training.standalone import StandaloneTrainer
from feddep.training.task import RunResult, Task


def run(task: Task, parameters: Any, steps: Mapping[str, StepResult]) -> RunResult:
    """FedSage+: FedSage, which is FedAvg of a GraphSAGE, on the mended subgraphs."""
    model = task.new_model()
    boundary = Boundary({"model": schema_of(model), **REPORTS}, task.observers)
    clients = [
        new_client(task, i, mended, split, boundary)
        for i, (mended, split) in enumerate(mended_subgraphs(task, steps["generator"]))
    ]
    return train_federated(task, model, boundary, clients)


def new_client(
    task: Task, number: int, mended: MendedSubgraph, split: Split, boundary: Boundary
) -> Client:
    """A client that trains and validates a new classifier on its mended subgraph."""
    learner = new_learner(
        mended.graph,
        split.train,
        task.setting,
        task.seed,
        f"client{number}",
        task.device,
        mended,
        mended.table,
    )
    return Client(number, task.new_model(), learner, mended, split, task.setting, boundary)


def run_alone(task: Task, parameters: Any, steps: Mapping[str, StepResult]) -> RunResult:
    """LocSage+: each client trains a GraphSAGE on its own mended subgraph (Section 4.2); nothing
    crosses any boundary.

    It is a new one, as in the authors' code, and not the classifier that NeighGen was trained with.
    Tested like Local: on the global graph's test nodes, averaged over clients.
    """
    trainers = [
        StandaloneTrainer(task, mended.graph, split, f"client{i}", mended.table, mended)
        for i, (mended, split) in enumerate(mended_subgraphs(task, steps["generator"]))
    ]
    return train_each(task, trainers)
