"""FedGTA: clients are mixed whose predictions are distributed alike over classes and graph (Li et
al., VLDB 2024).

After its local steps a client spreads what it predicts, P⁰ = y on training nodes and
softmax(logits) elsewhere, over its subgraph,

    Y ← α Â Y + (1 − α) P⁰,  then  Y_v ← Y_v + y_v on training nodes,        P = softmax(Y),  P' =
    softmax(Y / T),

both with y on training nodes.  It sends the moments of P, the means over nodes of P^p, of (P −
mean)^p or both for p = 1 … M, and its confidence H = Σ_v d_v (C/e + Σ_c P'_vc log P'_vc), which is
the larger the surer its predictions are.  The server mixes client k with S_k, those whose moments
have a cosine with k's above the threshold, each weighted by its H.

The first moments are close to the shares of the classes among a client's nodes: the server learns
them.  Degrees d are those of Â, which counts a node as a neighbour of its own; in the code they are
not, and a client without an edge counts 0. The authors train GAMLP; here it is the setting's
encoder.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from feddep.federation.boundary import Payload, numbers
from feddep.federation.client import Client, Update
from feddep.graph.graph import normalised_adjacency
from feddep.methods.basic import fedavg
from feddep.methods.mixtures import FedGTAParameters
from feddep.methods.mixtures.mixing_server import MixingServer, cosines
from feddep.nn.sparse import SparseMatrix
from feddep.training.task import RunResult, Task


class FedGTAClient(Client):
    """A client that sends moments and confidence of its predictions."""

    def __init__(self, *arguments: Any, parameters: FedGTAParameters) -> None:
        """Set up a client; the first arguments are those of :class:`Client`."""
        super().__init__(*arguments)
        graph, labels = self.evaluator.graph, self.evaluator.labels
        self.parameters = parameters
        self.adjacency = SparseMatrix.from_scipy(normalised_adjacency(graph), labels.device)
        self.degrees = torch.from_numpy(graph.degrees + 1.0).to(labels.device)
        self.known = torch.from_numpy(self.split.train).to(labels.device)
        self.truth = one_hot(labels[self.known].long(), graph.num_classes).float()

    def extra(self) -> Payload:
        """The moments, shape (M C) or (2 M C), and the confidence."""
        start = self.evaluator.logits(self.model).softmax(dim=1)
        start[self.known] = self.truth
        spread = self.propagate(start)
        given = self.parameters
        sharp, soft = spread.softmax(dim=1), (spread / given.temperature).softmax(dim=1)
        sharp[self.known] = soft[self.known] = self.truth
        highest = start.shape[1] / torch.e
        confidence = self.degrees @ (highest - torch.special.entr(soft.double()).sum(dim=1))
        return {"moments": moments(sharp, given), **numbers(confidence=float(confidence))}

    def propagate(self, start: Tensor) -> Tensor:
        """Y after all steps of label propagation, from P⁰, shape (n, C)."""
        alpha, spread = self.parameters.propagation, start
        for _ in range(self.parameters.propagation_steps):
            spread = alpha * (self.adjacency @ spread) + (1 - alpha) * start
            spread[self.known] += self.truth
        return spread


def moments(predictions: Tensor, parameters: FedGTAParameters) -> Tensor:
    """The moments of predictions of shape (n, C) over the nodes, one after the other."""
    about = {"origin": [predictions], "mean": [predictions - predictions.mean(dim=0)]}
    about["hybrid"] = about["origin"] + about["mean"]
    orders = range(1, parameters.orders + 1)
    return torch.cat(
        [values.pow(p).mean(dim=0) for values in about[parameters.moments] for p in orders]
    )


class FedGTAServer(MixingServer):
    """Mixes clients with similar moments by their confidence."""

    def mixture(self, updates: Sequence[Update]) -> Tensor:
        """H_l where l is in S_k, which k always is, and 0 elsewhere."""
        similar = (
            cosines(torch.stack([update.extra["moments"] for update in updates]))
            > self.parameters.threshold
        )
        similar.fill_diagonal_(True)
        return similar * torch.stack([update.extra["confidence"] for update in updates])


def run(task: Task, parameters: FedGTAParameters, steps: Any = None) -> RunResult:
    """FedAvg whose mean is over similar clients."""
    about = 2 if parameters.moments == "hybrid" else 1
    size = parameters.orders * task.graph.num_classes * about
    return fedavg.train_on(
        task,
        task.subgraphs(),
        partial(FedGTAClient, parameters=parameters),
        partial(FedGTAServer, parameters=parameters),
        extra={"moments": (size,), "confidence": ()},
    )
