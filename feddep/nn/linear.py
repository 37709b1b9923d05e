"""Linear maps whose initial weights come from a generator of the caller's, never from PyTorch's
global one.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn


def draw_uniform(parameters: Iterable[Tensor], inputs: int, generator: torch.Generator) -> None:
    """Draw each of ``parameters`` uniformly from ±1/√inputs, in place: PyTorch's own choice for a
    linear map.
    """
    bound = 1 / math.sqrt(inputs)
    for parameter in parameters:
        nn.init.uniform_(parameter, -bound, bound, generator=generator)


class Linear(nn.Linear):
    """A linear map; call :meth:`reset_parameters` before use."""

    def __init__(self, inputs: int, outputs: int) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = inputs, outputs
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def reset_parameters(self, generator: torch.Generator) -> None:  # type: ignore[override]
        """Draw weights and bias uniformly from ±1/√inputs."""
        draw_uniform((self.weight, self.bias), self.in_features, generator)
