"""Small tasks to test the baselines on: any graph, divided at random."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from hypothesis import strategies as st

from feddep.federation.boundary import Boundary
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.methods.shared.cross_edges import CrossEdges, cross_edges
from feddep.methods.shared.expansion import ExpandedSubgraph, level_widths
from feddep.methods.shared.routing import (
    DEGREES,
    Router,
    embedding_kinds,
    exchange,
    expanded_subgraphs,
    share_kinds,
)
from feddep.nn.layered import LayeredClassifier
from feddep.training.config import TrainingConfig
from feddep.training.task import Task
from graphs import random_graph

WIDTH = 5


def divide(graph: Graph, owner: np.ndarray, **changes: Any) -> Task:
    """A task in which ``owner`` says whose node is whose; every client validates on its first node
    and trains on the rest.
    """
    clients = int(owner.max()) + 1
    first = np.array([np.flatnonzero(owner == i)[0] for i in range(clients)])
    rest = np.setdiff1d(np.arange(graph.num_nodes), first)
    setting = TrainingConfig(
        optimizer="sgd",
        learning_rate=0.5,
        batch_size=8,
        fanout=3,
        rounds=3,
        layers=2,
        hidden_channels=WIDTH,
        dropout=0.0,
    )
    return Task(
        "divided",
        graph,
        Split(rest, first, rest),
        Partition(owner, clients),
        setting.replace(**changes),
        0,
    )


def owners(nodes: int, clients: int, seed: int) -> np.ndarray:
    """A random owner for each node, with at least one node for every client."""
    rng = np.random.default_rng(seed)
    return rng.permutation(
        np.concatenate([np.arange(clients), rng.integers(0, clients, nodes - clients)])
    )


def random_task(
    nodes: int = 24, edges: int = 50, clients: int = 3, seed: int = 0, **changes: Any
) -> Task:
    """A random graph with a random division, and changes to the setting."""
    return divide(random_graph(nodes, edges, seed=seed), owners(nodes, clients, seed), **changes)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Any small task: few or many edges, up to 4 clients, up to 3 layers."""
    clients, seed = draw(st.integers(1, 4)), draw(st.integers(0, 2**16))
    nodes = draw(st.integers(clients + 1, 10))
    return random_task(
        nodes, draw(st.integers(0, 25)), clients, seed, layers=draw(st.integers(1, 3))
    )


def trained(task: Task, seed: int = 3) -> Any:
    """A model with weights that are not the run's initial ones."""
    model = task.new_model()
    model.reset_parameters(torch.Generator().manual_seed(seed))
    return model


def expanded(
    task: Task, model: LayeredClassifier, levels: Sequence[int]
) -> tuple[list[CrossEdges], list[ExpandedSubgraph], Boundary]:
    """The clients' edges to each other, and their expanded subgraphs after an exchange with the
    weights of ``model``.
    """
    all_edges = cross_edges(task)
    kinds = embedding_kinds(all_edges, level_widths(model, levels))
    boundary = Boundary({**kinds, **share_kinds(all_edges, DEGREES, 1)})
    subgraphs = expanded_subgraphs(task, boundary, all_edges, levels)
    router = Router(
        [edges.nodes[edges.endpoints] for edges in all_edges],
        [edges.outside for edges in all_edges],
    )
    exchange(boundary, router, model, subgraphs, levels)
    return all_edges, subgraphs, boundary


def convolved(
    adjacency: sp.csr_matrix, x: np.ndarray, convolution: Any, change: Any = lambda v, mean: mean
) -> np.ndarray:
    """GraphSAGE's convolution, a node v at a time; ``change`` gives what is read in place of the
    mean over its neighbours.
    """
    weight, bias = convolution.weight.detach().numpy(), convolution.bias.detach().numpy()
    rows = []
    for v in range(len(x)):
        around = adjacency[v].indices
        mean = x[around].mean(axis=0) if len(around) else np.zeros(x.shape[1])
        rows.append(np.concatenate([x[v], change(v, mean)]) @ weight + bias)
    return np.array(rows)
