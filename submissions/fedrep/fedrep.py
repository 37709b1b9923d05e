"""FedRep (Collins et al., ICML 2021, Algorithm 1): in a round a client trains its own head on the
representation that it was sent, and then the representation below its head.  Representations are
averaged; heads stay with their clients.

The head is the last layer, the representation all layers below.
"""

from functools import partial
from typing import Annotated

from pydantic import Field
from torch import nn

from feddep.federation.client import Client
from feddep.methods.basic import fedavg
from feddep.methods.method import BUILT_IN_ENCODERS, Method
from feddep.methods.personalised.fedper import upper_weights
from feddep.training.learner import new_optimizer
from feddep.utils.parameters import Parameters
from feddep.utils.spaces import integers


class FedRepParameters(Parameters):
    head_epochs: Annotated[int, Field(ge=1, le=100)] = 2
    """local epochs of the head, before those of the representation (ours; the paper has 10 in
    mini-batches, where an epoch in full batches is one step)"""


class FedRepClient(Client):
    def __init__(self, *arguments, head_epochs):
        super().__init__(*arguments)
        self.head_epochs, self.optimizers = head_epochs, None

    def train(self):
        if self.optimizers is None or self.setting.optimizer_state == "fresh":
            head = upper_weights(self.model, 1)
            below = [each for name, each in self.model.named_parameters() if name not in head]
            parts = nn.ParameterList(head.values()), nn.ParameterList(below)
            self.optimizers = [new_optimizer(part, self.setting) for part in parts]
        of_head, of_representation = self.optimizers
        for _ in range(self.head_epochs):
            self.learner.epoch(self.model, of_head)
        losses = [
            self.learner.epoch(self.model, of_representation)
            for _ in range(self.setting.local_epochs)
        ]
        return losses[-1]


def run(task, parameters, steps):
    client = partial(FedRepClient, head_epochs=parameters.head_epochs)
    head = upper_weights(task.new_model(), 1)
    return fedavg.train_on(task, task.subgraphs(), client, shared=lambda name: name not in head)


METHODS = (
    Method(
        "fedrep",
        "FedRep",
        FedRepParameters,
        f"{__name__}:run",
        encoders=BUILT_IN_ENCODERS,
        full_batch=True,
        absence=True,
        tested_apart=True,
        evaluation="local_after",
        search={"head_epochs": integers(1, 5, log=True)},
        published=({"head_epochs": 10},),
        look=("#332288", 3),
    ),
)
