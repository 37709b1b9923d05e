"""Local: each client trains a GraphSAGE on its own subgraph, alone (FedDEP, Section 4.1; LocSage in FedSage).

Every client's model is tested on the global graph's test nodes, and scores are averaged over clients, as both papers do.
Each client chooses its round by its own validation nodes.

Assumes: nothing.
"""

from dataclasses import dataclass

from feddep.problem import Outcome, Problem
from feddep.solo import SoloTrainer

TITLE = "Local"
PARTITIONED = True


@dataclass(frozen=True)
class Parameters:
    """Local has no parameters of its own."""


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """Train one model a client; nothing crosses any border."""
    subgraphs = problem.subgraphs()
    trainers = [SoloTrainer(problem, graph, split, f"client{i}") for i, (graph, split) in enumerate(subgraphs)]
    for _ in problem.rounds():
        for trainer in trainers:
            trainer.round()
    facts = [{"client": i, "nodes": graph.num_nodes, "train": len(split.train)} for i, (graph, split) in enumerate(subgraphs)]
    return Outcome([trainer.history for trainer in trainers], clients=facts)
