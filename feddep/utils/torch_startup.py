"""Starting PyTorch without what nothing here uses."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch


def leave_out_compiler() -> None:
    """Let this process train without loading PyTorch's compiler, which takes as long as ``import torch`` itself.

    Optimisers load it only to exempt these methods from compilation.  For processes of the benchmark's own, in which nothing is
    compiled.
    """
    for name in ("add_param_group", "zero_grad"):
        setattr(torch.optim.Optimizer, name, inspect.unwrap(getattr(torch.optim.Optimizer, name)))
    for optimizer in (torch.optim.SGD, torch.optim.Adam):
        optimizer.step = _differentiable_if_asked(inspect.unwrap(optimizer.step))  # type: ignore[method-assign]


def _differentiable_if_asked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step whose operations are recorded for gradients only by an optimiser made to be differentiable, as PyTorch's own."""

    @functools.wraps(step)
    def wrapped(self: torch.optim.Optimizer, *arguments: Any, **options: Any) -> Any:
        with torch.set_grad_enabled(self.defaults["differentiable"]):
            return step(self, *arguments, **options)

    return wrapped
