"""Initial weights from a generator of the caller's, never from PyTorch's global one."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn


def draw_uniform(parameters: Iterable[Tensor], inputs: int, generator: torch.Generator) -> None:
    """Draw each of ``parameters`` uniformly from ±1/√inputs, in place: PyTorch's own choice for a linear map."""
    bound = 1 / math.sqrt(inputs)
    for parameter in parameters:
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
