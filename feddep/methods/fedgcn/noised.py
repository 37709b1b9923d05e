"""FedGCN on rows of bounded length, with noise on what is exchanged (ours).

What a client sends is (ε, δ)-differentially private for the features of one of its nodes v, x_v or
any other row of length at most C: it moves by at most ‖x_v − x'_v‖ · (Σ_r M[r, v]²)^½ for M =
D̂^(−1/2) (A + I) D̂^(−1/2) and all rows r sent.  Two such rows are up to 2C apart, and √2 C if no
feature is negative.  Noise is that of the Gaussian mechanism (Balle and Wang, 2018) for the largest
move of any of its nodes.  Edges, degrees and weights are not covered.
"""

import dataclasses
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import norm

from feddep.methods.fedgcn import NoisedParameters, fedgcn
from feddep.privacy.accountant import least_noise
from feddep.privacy.vesper_accounting import TouchMixture
from feddep.training.task import RunResult, Task


def run(task: Task, parameters: NoisedParameters, steps: Any = None) -> RunResult:
    """FedGCN with bounded features and noised sums."""
    features = bounded(task.graph.features, parameters.clip)
    apart = parameters.clip * (math.sqrt(2) if features.data.min() >= 0 else 2)
    noise = (
        0.0
        if parameters.epsilon is None
        else apart * noise_multiplier(parameters.epsilon, parameters.delta)
    )
    return fedgcn.run(
        dataclasses.replace(task, graph=dataclasses.replace(task.graph, features=features)),
        parameters,
        noise=noise,
    )


def bounded(features: sp.csr_matrix, clip: float) -> sp.csr_matrix:
    """The same rows, those longer than ``clip`` scaled down to it; float32, shape (n, F)."""
    lengths = np.maximum(norm(features, axis=1), 1e-30)
    return sp.csr_matrix(
        sp.diags_array(np.minimum(1, clip / lengths).astype(np.float32)) @ features
    )


def noise_multiplier(epsilon: float, delta: float) -> float:
    """σ/Δ with which one Gaussian mechanism is (ε, δ)-private, at most 0.01 % above the least."""
    return least_noise(
        lambda sigma: TouchMixture(np.ones(1), np.ones(1)).epsilon(sigma, delta),
        epsilon,
        0.01,
        1e6,
        1.0001,
    )
