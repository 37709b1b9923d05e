"""The course of a training: what was measured after each round, and the weights at the best of them."""

from dataclasses import dataclass, field

from torch import Tensor, nn


@dataclass
class History:
    """Measurements of one model, a round each.

    The best round is the one with the highest validation accuracy, the first of equals.  Test accuracy is recorded
    beside it and never chosen by.
    """

    loss: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)
    best_weights: dict[str, Tensor] = field(default_factory=dict)

    def record(self, model: nn.Module, loss: float, validation: float, test: float) -> None:
        """Append a round: mean training loss (nats a node), validation and test accuracy (shares of 1)."""
        if not self.validation or validation > max(self.validation):
            self.best_weights = {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()}
        self.loss.append(loss)
        self.validation.append(validation)
        self.test.append(test)

    @property
    def best_round(self) -> int:
        """The round best on validation, counted from 1."""
        return self.validation.index(max(self.validation)) + 1

    @property
    def best_test(self) -> float:
        """Test accuracy at the round best on validation."""
        return self.test[self.best_round - 1]
