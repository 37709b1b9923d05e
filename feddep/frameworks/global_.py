"""Global: one GraphSAGE trained on the entire graph, no link missing (FedDEP, Section 4.1; GlobSage in FedSage).

Assumes: whole graph in one place.
"""

from dataclasses import dataclass

from feddep.problem import Outcome, Problem
from feddep.solo import SoloTrainer

TITLE = "Global"
PARTITIONED = False


@dataclass(frozen=True)
class Parameters:
    """Global has no parameters of its own."""


def run(problem: Problem, parameters: Parameters) -> Outcome:
    """Train on the whole graph for as many rounds as the setting has."""
    trainer = SoloTrainer(problem, problem.graph, problem.split, "global")
    for _ in problem.rounds():
        trainer.round()
    return Outcome([trainer.history])
