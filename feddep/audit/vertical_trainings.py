"""Trainings of the vertical methods (:mod:`feddep.methods.vesper`) under attack: their models and noise scale."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from feddep.methods.method import Method
from feddep.methods.vesper import PerturbedParameters
from feddep.methods.vesper.noise_budget import AGGREGATIONS, noise_scale
from feddep.methods.vesper.split_training import TRAINING, Protocol, SplitTraining
from feddep.training.task import Task


@dataclass(frozen=True, eq=False)
class Attacked:
    """A training of both parties.

    Attributes:
        task: what is trained on.
        protocol: what the parties do.
        training: the parties and their models; when training has ended, with the weights of the last round.
    """

    task: Task
    protocol: Protocol
    training: SplitTraining


@contextmanager
def attacked() -> Iterator[list[Attacked]]:
    """Collect the trainings with the graph that methods begin within the context.

    Methods construct the parties themselves, so the class is patched.
    """
    found: list[Attacked] = []
    construct = SplitTraining.__init__

    def constructed(self: SplitTraining, task: Task, protocol: Protocol, encoder: Any) -> None:
        construct(self, task, protocol, encoder)
        if protocol.kinds == TRAINING:  # the training of the encoder before it has no edges
            found.append(Attacked(task, protocol, self))

    SplitTraining.__init__ = constructed  # type: ignore[method-assign]
    try:
        yield found
    finally:
        SplitTraining.__init__ = construct  # type: ignore[method-assign]


def with_known_noise(method: Method, task: Task, parameters: Any) -> Any:
    """The parameters with the noise scale θ of the run in place of its privacy budget.

    Other trainings with them, of more or fewer nodes, then have the noise of this run.
    """
    if not isinstance(parameters, PerturbedParameters):
        return parameters
    nodes, edges = len(task.split.train), task.graph.num_edges
    theta = noise_scale(nodes, edges, task.setting, parameters, AGGREGATIONS[method.name])
    return parameters.replace(theta=theta, epsilon=None)
