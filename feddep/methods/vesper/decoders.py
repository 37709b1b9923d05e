"""From the embeddings of a node after each of L layers to its class (VESPER, Section 2.5, "Decoder")."""

import torch
from torch import Tensor, nn

from feddep.methods.vesper.perceptron import Perceptron
from feddep.nn.linear import draw_uniform


class ConcatDecoder(nn.Module):
    """The CONCAT decoder: the embeddings of all layers side by side, followed by a perceptron."""

    def __init__(self, width: int, layers: int, classes: int, maps: int, dropout: float) -> None:
        """Set up the decoder; call :meth:`reset_parameters` before use.

        Args:
            width: width d of an embedding.
            layers: number of embeddings L of a node.
            classes: number of classes C.
            maps: number of linear maps of the perceptron, at least 1; its hidden layers are of width d.
            dropout: probability that a hidden unit is set to zero in training.
        """
        super().__init__()
        self.perceptron = Perceptron([layers * width, *[width] * (maps - 1), classes], dropout)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew."""
        self.perceptron.reset_parameters(generator)

    def forward(self, embeddings: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Logits, shape (B, C), from embeddings, shape (B, L, d); no dropout without a generator."""
        return self.perceptron(embeddings.flatten(1), generator)


class GRUDecoder(nn.Module):
    """The GRU decoder: the embeddings are read as a sequence, layer 1 first; a perceptron follows the last state."""

    def __init__(self, width: int, classes: int, maps: int, dropout: float) -> None:
        """Set up the decoder, with a state of width d; the arguments are those of :class:`ConcatDecoder`."""
        super().__init__()
        self.gru = nn.GRU(width, width, batch_first=True)
        self.perceptron = Perceptron([*[width] * maps, classes], dropout)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all weights anew."""
        draw_uniform(self.gru.parameters(), self.gru.hidden_size, generator)
        self.perceptron.reset_parameters(generator)

    def forward(self, embeddings: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Logits, shape (B, C), from embeddings, shape (B, L, d); no dropout without a generator."""
        _, state = self.gru(embeddings)
        return self.perceptron(state[0], generator)
