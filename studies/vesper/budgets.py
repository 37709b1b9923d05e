"""Noise and guarantees of a run of VESPER or a baseline of its paper, from what the run was made
with and public sizes.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from feddep.datasets.public_graphs import REGISTRY
from feddep.graph.split import PARTS
from feddep.methods import registry, vesper
from feddep.methods.vesper import PerturbedParameters, VerticalParameters
from feddep.methods.vesper.noise_budget import accounted_epsilon, aggregation_of, noise_scale
from feddep.training.config import TrainingConfig
from feddep.utils.errors import ConfigError

METHODS = tuple(each.name for each in vesper.METHODS)
"""The methods of VESPER's paper, in the order of its tables."""
PAPER = "rdp"
"""The account that the paper says it ran."""
_ROUNDING = 1e-9  # as in feddep.graph.split


@dataclass(frozen=True)
class Budget:
    """Noise of a run, and its proven guarantee; NaN where there is none.

    Attributes:
        epsilon: the budget ε that noise was computed from.
        delta: δ of all ε here; 1/n² of a run that has none, which is below 1/|E| and computed from
            public facts alone.
        theta: the noise scale θ that was used; 0 where a method that could have noise has none.
        guarantee: ε of an edge by the account ``certified``; ∞ where no finite one is proven.
        paper_epsilon: ε by the account ``rdp``, which is the paper's, whether or not it holds.
    """

    epsilon: float = math.nan
    delta: float = math.nan
    theta: float = math.nan
    guarantee: float = math.nan
    paper_epsilon: float = math.nan


def training_nodes(n: int, shares: Mapping[str, float], labelled: float | None = None) -> int:
    """Number of training nodes N_T, as :func:`feddep.graph.split.random_split` and
    ``Split.labelled`` leave them.

    Args:
        n: number of nodes of the graph.
        shares: shares of ``train``, ``val`` and ``test``.
        labelled: share of the nodes of all three sets whose label may be trained on; None keeps all
            training nodes.
    """
    ends = np.floor(n * (np.cumsum([shares[part] for part in PARTS]) + _ROUNDING)).astype(int)
    return int(ends[0]) if labelled is None else round(labelled * int(ends[-1]))


def budget(specification: Mapping[str, Any]) -> Budget:
    """Noise and guarantees of a run.

    Args:
        specification: of the run, as its result has it
            (:func:`feddep.experiment.keys.specification`).

    Raises:
        ConfigError: if the method is none of VESPER's paper, or the number of training nodes is not
            public.
        PrivacyError: if no noise keeps the budget.
        KeyError: if the specification lacks a part.
    """
    method, parameters = registry.configured(specification["method"])
    if not isinstance(parameters, VerticalParameters):
        raise ConfigError(
            f"the method {method.name} is none of VESPER's paper; a trade-off is of: "
            f"{', '.join(METHODS)}"
        )
    if not isinstance(parameters, PerturbedParameters):
        return Budget()
    if parameters.epsilon is None and parameters.theta == 0:
        return Budget(theta=0.0, guarantee=math.inf, paper_epsilon=math.inf)
    dataset, setting = specification["dataset"], TrainingConfig(**specification["setting"])
    n, edges = _sizes(dataset)
    nodes = training_nodes(n, specification["split"], dataset.get("labelled"))
    delta = n**-2 if parameters.delta is None else parameters.delta
    return _budget(
        nodes, edges, delta, setting, parameters, aggregation_of(method.name, parameters)
    )


def _sizes(dataset: Mapping[str, Any]) -> tuple[int, int]:
    """Numbers of nodes and edges of a graph; of a synthetic one 0 edges, which nobody has
    counted.

    Raises:
        ConfigError: if these do not tell how many nodes are trained on.
    """
    if (split := dataset.get("split", "random")) != "random":
        raise ConfigError(
            f"split is {split}, with which the number of training nodes depends on labels; a "
            "trade-off takes random"
        )
    if synthetic := dataset.get("synthetic"):
        return synthetic["nodes"], 0
    if dataset["name"] not in REGISTRY:
        raise ConfigError(
            f"the dataset {dataset['name']} is a graph of your own, whose nodes may lack labels; a "
            "trade-off takes public and synthetic graphs"
        )
    graph = REGISTRY[dataset["name"]]
    return graph.nodes, graph.edges


@functools.cache
def _budget(
    nodes: int,
    edges: int,
    delta: float,
    setting: TrainingConfig,
    parameters: PerturbedParameters,
    aggregation: str,
) -> Budget:
    """The same from public sizes; kept, as seeds and much that differs between runs change
    nothing.
    """
    epsilon, theta = parameters.epsilon, noise_scale(nodes, edges, setting, parameters, aggregation)

    def spent(accountant: str) -> float | None:
        return accounted_epsilon(nodes, setting, parameters, aggregation, accountant, theta, delta)

    # Nothing is proven where neighbours are sampled, degrees have no noise, or an edge may change
    # any number of VFGNN's rows; and the paper's theorem is of a release in every step.
    guarantee = spent("certified")
    paper = None if parameters.release == "one_shot" else spent(PAPER)
    known = math.nan if epsilon is None else epsilon
    return Budget(
        known,
        delta,
        theta,
        math.inf if guarantee is None else guarantee,
        math.nan if paper is None else paper,
    )
