"""Starting PyTorch without what nothing here uses."""

import inspect

import torch


def leave_out_compiler() -> None:
    """Let this process train without loading PyTorch's compiler, which takes as long as ``import torch`` itself.

    Optimisers load it only to exempt these methods from compilation.  For processes of the benchmark's own, in which nothing is
    compiled and no optimiser is differentiable.
    """
    for name in ("add_param_group", "zero_grad"):
        setattr(torch.optim.Optimizer, name, inspect.unwrap(getattr(torch.optim.Optimizer, name)))
    for optimizer in (torch.optim.SGD, torch.optim.Adam):
        optimizer.step = torch.no_grad()(inspect.unwrap(optimizer.step))  # type: ignore[method-assign]
