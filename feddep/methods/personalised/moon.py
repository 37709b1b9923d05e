"""MOON: the local model's embeddings stay near those of the model that was sent (Li et al., 2021,
Algorithm 1).

With an embedding z of a node, z_glob that of the model that the server sent, and z_prev that of the
client's model at the end of the round before, a client adds to its loss μ times the mean over its
nodes of

    −log( exp(cos(z, z_glob) / τ) / (exp(cos(z, z_glob) / τ) + exp(cos(z, z_prev) / τ)) )

In the first round there is no z_prev, and nothing is added.  The embedding is what the last layer
reads; there is no projection head as in the paper, and all nodes of a client count, labelled or
not, as in OpenFGL's code.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from feddep.federation.client import Client
from feddep.methods.basic import fedavg
from feddep.methods.personalised import MoonParameters
from feddep.training.evaluator import Evaluator
from feddep.training.learner import FullBatchLearner
from feddep.training.task import RunResult, Task


class ContrastiveClient(Client):
    """A client that keeps the embeddings of the model that it was sent, and of its own of the round
    before.
    """

    learner: FullBatchLearner
    previous: Tensor

    def __init__(self, *arguments: Any, params: MoonParameters) -> None:
        """Set up a client; the first arguments are those of :class:`Client`."""
        super().__init__(*arguments)
        self.params = params

    def train(self) -> float:
        """The local steps from the model as it was sent; from the second round on with the
        contrast.
        """
        self.received = embeddings(self.model, self.evaluator)
        loss = super().train()
        self.previous = embeddings(self.model, self.evaluator)
        self.learner.penalty = self.contrast
        return loss

    def contrast(self, model: Any, hidden: Tensor, logits: Tensor) -> Tensor:
        """The term of the loss, from embeddings z of all nodes, shape (n, H)."""
        similarities = torch.stack(
            [cosine_similarity(hidden, each) for each in (self.received, self.previous)]
        )
        return (
            -self.params.mu * (similarities / self.params.temperature).log_softmax(dim=0)[0].mean()
        )


@torch.no_grad()
def embeddings(model: Any, inputs: Evaluator) -> Tensor:
    """Embeddings of all nodes, the inputs of the last layer, without dropout: shape (n, H)."""
    return model.body(inputs.features, inputs.adjacency)


def run(task: Task, parameters: MoonParameters, steps: Any = None) -> RunResult:
    """FedAvg of clients with the contrast."""
    task.check_hidden()
    return fedavg.train_on(task, task.subgraphs(), partial(ContrastiveClient, params=parameters))
