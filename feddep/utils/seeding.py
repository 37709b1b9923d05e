"""Random generators keyed by what they are for, so that every draw is a function of the run's seed
alone.

A generator is named by a path such as ``("client", 3, "sampling")``.  Two different paths give
independent streams, and no stream depends on how much another has drawn or on the order in which
clients are visited.
"""

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_seed(seed: int, *path: str | int) -> int:
    """A 63-bit seed for the stream ``path`` of the run ``seed`` (SHA-256 of both)."""
    text = "/".join([str(seed), *(f"{type(part).__name__}:{part}" for part in path)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """A NumPy generator for the stream ``path`` of the run ``seed``."""
    return np.random.default_rng(derive_seed(seed, *path))


def torch_generator(seed: int, *path: str | int, device: str = "cpu") -> "torch.Generator":
    """A PyTorch generator for the stream ``path`` of the run ``seed``, on the device of what is
    drawn.
    """
    import torch  # here, because planning needs no PyTorch

    return torch.Generator(device).manual_seed(derive_seed(seed, *path))
