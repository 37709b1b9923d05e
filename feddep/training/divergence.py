"""Divergence: numbers that overflow while something is trained are an error, and no result."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import scipy.sparse as sp
import torch
from torch import Tensor

from feddep.utils.errors import DivergenceError

_LARGE = 1000
"""Features beyond this are called the cause of a divergence."""


def check_finite(what: str, loss: float, weights: Iterable[Tensor] = (), remedy: str = "") -> None:
    """Make sure that training still has numbers.

    Args:
        what: what is trained, as a sentence names it.
        loss: its loss.
        weights: its weights, or what it puts out.
        remedy: what may help; by default what :func:`divergence_named` is told.

    Raises:
        DivergenceError: if the loss, or anything in ``weights``, is not a finite number.
    """
    if not math.isfinite(loss):
        raise DivergenceError(f"the loss of {what} is {loss}", remedy)
    if not all(_finite(each) for each in weights):
        raise DivergenceError(f"{what} has numbers that are not finite", remedy)


def _finite(numbers: Tensor) -> bool:
    """Whether all are; their sum, where it is finite, tells so in a fraction of the time."""
    return math.isfinite(float(numbers.detach().sum())) or bool(torch.isfinite(numbers).all())


@contextmanager
def divergence_named(name: str, remedy: str, features: sp.csr_matrix) -> Iterator[None]:
    """Say of a divergence what diverged, in which round, and what may help.

    Args:
        name: of the method or step that is run.
        remedy: what may help where the error does not know better.
        features: of all nodes, as they are trained on; where they are large, they are to be scaled.

    Raises:
        DivergenceError: where one is raised within.
    """
    try:
        yield
    except DivergenceError as error:
        when = f" in round {error.round}" if error.round else ""
        remedy, largest = error.remedy or remedy, abs(features.data).max(initial=0)
        if largest > _LARGE:
            remedy = f"features are as large as {largest:g}; scale them (features: minmax)"
        raise DivergenceError(f"{name} diverged{when}: {error}; {remedy}") from None
