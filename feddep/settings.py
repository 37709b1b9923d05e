"""How a classifier is trained: the numbers that a paper's "experimental settings" paragraph gives."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """Model and optimisation, the same for every framework of a table.

    Attributes:
        optimizer: ``sgd`` (without momentum) or ``adam``; a client's optimiser starts afresh in each round.
        learning_rate: step size.
        weight_decay: L2 penalty, as the optimiser's own option.
        batch_size: training nodes a mini-batch.
        fanout: neighbours d drawn for each node in each layer.
        rounds: communication rounds; for a model that is trained alone, epochs.
        local_epochs: epochs that a client trains in one round.
        layers: number of graph convolutions.
        hidden: width of the hidden layers.
        dropout: probability that a hidden unit is set to zero in training.
    """

    optimizer: str
    learning_rate: float
    weight_decay: float
    batch_size: int
    fanout: int
    rounds: int
    local_epochs: int
    layers: int
    hidden: int
    dropout: float
