"""The bound of FedSage's Theorem 6.2 (C.1), and the error that it bounds, over the number of
training nodes.

The theorem is about kernel regression with the graph neural tangent kernel Θ of one aggregation and
one ReLU layer (Lemma C.3), on real labels: here one class against the others, y ∈ {0, 1}.  With the
constants of the theorem that it cites (Bartlett and Mendelson, 2002), for a loss in [0, 1] that is
1-Lipschitz and 0 on the training nodes, with probability 1 − σ

    E ℓ ≤ 2 √(yᵀ Θ⁻¹ y · tr Θ) / n + 3 √(ln(2/σ) / 2n).
"""

import math

import numpy as np

from feddep.graph.graph import Graph, with_self_loops
from feddep.utils.seeding import generator
from studies.measuring import Case, Tables

SIZES = (100, 200, 400, 800, None)
"""Numbers of training nodes; None: all."""
SIGMA = 0.05


def measure(case: Case) -> Tables:
    """Quantities of the bound, means over the classes.

    Returns:
        ``generalisation``: rows with nodes, n; distinct, those of different aggregated features, on
            which Θ is inverted; norm, yᵀ Θ⁻¹ y / n; term, the bound's first; bound; permuted, the
            first term for labels in a random order; constant, the loss min(1, |f − y|) of f = 0 on
            test nodes; loss, that of the regression, which is 0 on training nodes; accuracy, of the
            class of the largest regression on test nodes; gnn_train and gnn_test, of the run's
            classifier.
    """
    graph, split = case.task.graph, case.task.split
    inputs, targets = aggregated(graph), np.eye(graph.num_classes)[graph.labels]
    model = case.task.new_model()
    model.load_state_dict(dict(case.weights))
    right = case.task.evaluator.logits(model.eval()).argmax(dim=1).cpu().numpy() == graph.labels
    gnn = {"gnn_train": right[split.train].mean(), "gnn_test": right[split.test].mean()}
    draw, test = generator(case.task.seed, "generalisation"), split.test
    order, rows = draw.permutation(split.train), []
    for size in SIZES:
        nodes = order[:size]
        chosen = nodes[np.unique(inputs[nodes].round(10), axis=0, return_index=True)[1]]
        n, theta = len(chosen), kernel(inputs[chosen], inputs[chosen])
        weights = np.linalg.solve(theta, targets[chosen])
        term = 2 * np.sqrt((targets[chosen] * weights).sum(axis=0) * np.trace(theta)) / n
        mixed = targets[draw.permutation(chosen)]
        permuted = (mixed * np.linalg.solve(theta, mixed)).sum(axis=0) * np.trace(theta)
        values = kernel(inputs[test], inputs[chosen]) @ weights
        rows.append(
            {
                "nodes": len(nodes),
                "distinct": n,
                "norm": (targets[chosen] * weights).sum(axis=0).mean() / n,
                "term": term.mean(),
                "bound": term.mean() + 3 * math.sqrt(math.log(2 / SIGMA) / (2 * n)),
                "permuted": 2 * np.sqrt(permuted).mean() / n,
                "constant": targets[test].mean(),
                "loss": np.minimum(1, np.abs(values - targets[test])).mean(),
                "accuracy": (values.argmax(axis=1) == graph.labels[test]).mean(),
                **gnn,
            }
        )
    return {"generalisation": rows}


def aggregated(graph: Graph) -> np.ndarray:
    """h̄_u, the sum of the features of a node and its neighbours, of norm 1; shape (n, F)."""
    sums = (with_self_loops(graph) @ graph.features).toarray().astype(float)
    return sums / np.linalg.norm(sums, axis=1, keepdims=True).clip(1e-12)  # type: ignore[no-any-return]


def kernel(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Θ of pairs of rows h̄: Σ Σ̇ + Σ', with Σ = h̄_uᵀ h̄_v, Σ̇ = (π − arccos Σ) / 2π and Σ' = E[σ(a)
    σ(b)] = (Σ (π − arccos Σ) + √(1 − Σ²)) / 2π, where the paper prints no first Σ in Σ'.
    """
    inner = np.clip(first @ second.T, -1, 1)
    angle = math.pi - np.arccos(inner)
    return (2 * inner * angle + np.sqrt(1 - inner**2)) / (2 * math.pi)  # type: ignore[no-any-return]
