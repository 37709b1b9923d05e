"""Attacks on vertical training: node membership by what a model answers, edges by what party B is
sent (VESPER, Figure 4).
"""

from typing import Any

from feddep.methods.method import Method
from feddep.methods.vesper import PerturbedParameters
from feddep.methods.vesper.noise_budget import aggregation_of, noise_scale
from feddep.training.task import Task
from studies.measuring import Case, Tables
from studies.vesper.vertical_attacks import node_membership, vertical_canaries


def measure(case: Case) -> Tables:
    """Attack a method of :data:`feddep.methods.vesper.METHODS`.

    Returns:
        ``vertical_attacks``: one row with budget (ε, None without one), theta (None without noise),
        and what :func:`node_membership.measure` and :func:`vertical_canaries.measure` return.
    """
    method, parameters = case.method, with_known_noise(case.method, case.task, case.parameters)
    of = {
        "budget": getattr(case.parameters, "epsilon", None),
        "theta": getattr(parameters, "theta", None),
    }
    nodes, edges = (
        attack.measure(method, case.task, parameters)
        for attack in (node_membership, vertical_canaries)
    )
    return {"vertical_attacks": [{**of, **nodes, **edges}]}


def with_known_noise(method: Method, task: Task, parameters: Any) -> Any:
    """The parameters with the noise scale θ of the run in place of its privacy budget, for
    trainings of more or fewer nodes.
    """
    if not isinstance(parameters, PerturbedParameters):
        return parameters
    nodes, edges = len(task.split.train), task.graph.num_edges
    theta = noise_scale(
        nodes, edges, task.setting, parameters, aggregation_of(method.name, parameters)
    )
    return parameters.replace(theta=theta, epsilon=None)
