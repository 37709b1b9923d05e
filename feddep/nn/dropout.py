"""Dropout from a generator of its own."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

_BLOCK = 2**18  # numbers that are masked at once in place, a multiple of the four draws of a word


def dropout_mask(like: Tensor, probability: float, generator: torch.Generator) -> Tensor:
    """A tensor of the shape of ``like`` that is 0 with ``probability`` and 1 / (1 − probability)
    otherwise.

    Four 16-bit draws are cut from each 64-bit number, so ``probability`` is met to within 2⁻¹⁷;
    this takes a sixth of the time of ``torch.nn.functional.dropout``, whose global generator would
    moreover tie clients to one another.
    """
    return _kept(like, probability, generator).to(like.dtype).div_(1 - probability)


def _kept(like: Tensor, probability: float, generator: torch.Generator) -> Tensor:
    words = torch.empty(-(-like.numel() // 4), dtype=torch.int64, device=like.device)
    draws = (
        words.random_(-(2**63), None, generator=generator)
        .view(torch.int16)[: like.numel()]
        .view(like.shape)
    )
    return draws >= round(probability * 2**16) - 2**15


@torch.no_grad()
def drop_(hidden: Tensor, probability: float, generator: torch.Generator) -> Tensor:
    """Dropout in place, without a gradient; the same numbers as those of :func:`drop`."""
    return hidden.mul_(_kept(hidden, probability, generator)).mul_(scale(hidden, probability))


def scale(like: Tensor, probability: float) -> Tensor:
    """The number of a mask where nothing is dropped, to the last bit."""
    return like.new_ones(()).div_(1 - probability)


def drop(hidden: Tensor, probability: float, generator: torch.Generator | None) -> Tensor:
    """Dropout of ``hidden``; none without a generator."""
    if generator is None or probability == 0:
        return hidden
    return hidden * dropout_mask(hidden, probability, generator)


def rectify_and_drop_(
    hidden: Tensor, probability: float, generator: torch.Generator | None
) -> Tensor:
    """``drop(hidden.relu_(), …)`` in place, with the same draws and the same gradient, for tensors
    that no cache holds.
    """
    if generator is None or probability == 0:
        return hidden.relu_()
    return _RectifiedDropout.apply(hidden, probability, generator)


class _RectifiedDropout(Function):
    """Keeps only its result, which is zero just where no gradient passes."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, probability: float, generator: torch.Generator) -> Tensor:
        hidden.relu_()
        for block in hidden.view(-1).split(_BLOCK):
            drop_(block, probability, generator)
        ctx.probability = probability
        ctx.mark_dirty(hidden)
        ctx.save_for_backward(hidden)
        return hidden

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (hidden,) = ctx.saved_tensors
        passed = torch.ops.aten.threshold_backward(gradient, hidden, 0)
        return passed.mul_(scale(gradient, ctx.probability)), None, None
