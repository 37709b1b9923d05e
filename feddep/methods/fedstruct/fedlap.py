"""FedLap: clients know a spectral basis of the global graph, and learn structure features in it
that are smooth on the graph.

Source: Aliakbari et al., "Subgraph federated learning via spectral methods" (2025).  With U of
orthonormal columns, shape (n, r), and Θ = diag(Uᵀ L U) from the Laplacian L = I − D̂^(−1/2) (A + I)
D̂^(−1/2) of the global graph, D̂ = D + I, client k predicts

    O_k = f(X_k, A_k) + MLP(ReLU(U_k W))

from its rows U_k, shape (n_k, r), and W, shape (r, d), which is learned.  Its loss is the
cross-entropy and

    λ tr(Wᵀ Θ W) / tr(Wᵀ W) = λ tr(Sᵀ L S) / tr(Sᵀ S),   S = U W,

the Dirichlet energy of S.  Training is that of :mod:`feddep.methods.fedstruct.training`.

U and Θ are the Ritz vectors and values of the r least eigenvalues after m Lanczos steps from a
random vector, orthogonalised in full.  Clients first tell each other the degrees of nodes with
neighbours elsewhere, which L takes.  In each step the server sends clients the entries of their
nodes and of their neighbours elsewhere, and they answer with their entries of the product.  Unlike
all leading eigenvectors, such a basis has few vectors of an eigenvalue that has many independent
ones.  This matters: 0 has as many as the graph has components, 78 on Cora and 438, more than r, on
CiteSeer.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from scipy.linalg import eigh_tridiagonal
from torch import Tensor

from feddep.federation.boundary import Boundary, ByClient
from feddep.federation.communication import merged
from feddep.methods.fedstruct import FedLapParameters, training
from feddep.methods.shared.cross_edges import CrossEdges, cross_edges, normalised_rows
from feddep.methods.shared.routing import DEGREES, share_degrees, share_kinds
from feddep.training.task import RunResult, Task
from feddep.utils.seeding import generator

EXHAUSTED = 1e-10
"""Length of the next Lanczos vector of L below which it is rounding error."""


class FedLapModel(training.StructureModel):
    """O_k = f(X_k, A_k) + MLP(ReLU(U_k W))."""

    def structure_logits(self, generator: torch.Generator | None) -> Tensor:
        return self.perceptron((self.matrix @ self.structure).relu(), generator)


def run(task: Task, parameters: FedLapParameters, steps: Any = None) -> RunResult:
    """FedLap from top to bottom."""
    edges = cross_edges(task)
    start = generator(task.seed, "lanczos").standard_normal(task.graph.num_nodes)
    offline = Boundary({**share_kinds(edges, DEGREES, 1), **messages(edges)}, task.observers)
    rows = [
        normalised_rows(task, *each)
        for each in zip(edges, share_degrees(task, offline, edges), strict=True)
    ]
    values, vectors = lanczos(laplacian(rows, offline, edges), start, parameters.iterations)
    values, vectors = values[: parameters.vectors], vectors[:, : parameters.vectors]
    theta = torch.from_numpy(values).float().to(task.device)

    def new_model(matrix: Tensor) -> FedLapModel:
        return FedLapModel(task, matrix, parameters.structure_width)

    def energy(model: FedLapModel) -> Tensor:
        squares = model.structure.square().sum(dim=1)
        return parameters.smoothing * (theta @ squares) / squares.sum()

    sizes = [{"values": (len(values),), "vectors": (len(own.nodes), len(values))} for own in edges]
    kinds = training.kinds(new_model(torch.empty(0, len(values))))
    boundary = Boundary({**kinds, "basis": ByClient(down=sizes)}, task.observers)
    told_rows = []
    for i, own in enumerate(edges):
        told = {"values": theta, "vectors": torch.from_numpy(vectors[own.nodes]).float()}
        told_rows.append(boundary.send(i, "down", "basis", told)["vectors"])
    result = training.train(task, boundary, told_rows, new_model, energy)
    return dataclasses.replace(
        result, communication=merged(offline.communication.rows(), result.communication)
    )


def lanczos(
    multiply: Callable[[np.ndarray], np.ndarray], start: np.ndarray, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """Ritz values of a symmetric matrix, ascending, and its Ritz vectors, after at most so many
    steps (Lanczos, 1950).

    Args:
        multiply: the matrix times a vector, shape (n,).
        start: the first vector, shape (n,).
        steps: most steps; fewer where the vectors found span all that ``start`` leads to.

    Returns:
        Values of shape (m,), and vectors of length 1, shape (n, m); float64.
    """
    basis = np.empty((len(start), min(steps, len(start))))
    diagonal, beside, rest = [], [], start
    for j in range(basis.shape[1]):
        beside.append(np.linalg.norm(rest))
        if beside[-1] < EXHAUSTED:
            break
        basis[:, j] = rest / beside[-1]
        rest, known = multiply(basis[:, j]), basis[:, : j + 1]
        diagonal.append(basis[:, j] @ rest)
        for _ in range(2):  # Once leaves rounding errors that grow.
            rest = rest - known @ (known.T @ rest)
    values, coordinates = eigh_tridiagonal(diagonal, beside[1 : len(diagonal)])
    return values, basis[:, : len(diagonal)] @ coordinates


def laplacian(
    rows: Sequence[sp.csr_matrix], boundary: Boundary, edges: Sequence[CrossEdges]
) -> Callable[[np.ndarray], np.ndarray]:
    """L times a vector, shape (n,) each, of which each client computes the entries of its nodes
    with its ``rows`` (:func:`~feddep.methods.shared.cross_edges.normalised_rows`).
    """
    known = [np.concatenate([own.nodes, own.outside]) for own in edges]

    def product(vector: np.ndarray) -> np.ndarray:
        found = np.empty_like(vector)
        for i, own in enumerate(edges):
            sent = {"entries": torch.from_numpy(vector[known[i]])}
            told = boundary.send(i, "down", "vector", sent)["entries"].numpy()
            answer = {"entries": torch.from_numpy(told[: len(own.nodes)] - rows[i] @ told)}
            found[own.nodes] = boundary.send(i, "up", "product", answer)["entries"].numpy()
        return found

    return product


def messages(edges: Sequence[CrossEdges]) -> dict[str, ByClient]:
    """The messages of :func:`laplacian`."""
    vectors = [{"entries": (len(own.nodes) + len(own.outside),)} for own in edges]
    products = [{"entries": (len(own.nodes),)} for own in edges]
    return {"vector": ByClient(down=vectors), "product": ByClient(up=products)}
