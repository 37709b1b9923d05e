"""Counting floating-point operations, by looking at every tensor operation that PyTorch carries
out.

The rule:

* a matrix product, and a weighted sum of looked-up rows, costs two for each multiply-add;
* what works element by element costs one for each element of its result: arithmetic, comparison,
    activation, masking;
* what reduces or scans its input costs one for each element of the input: sums, least elements,
    losses, added gradients;
* a step of SGD costs two for each weight, one of Adam twelve;
* nothing is charged for what only makes, moves, copies or views numbers, for drawing them, or for
    integers and truth values.

An operation that the rule does not know is an error, so that nothing is left out unnoticed.  Counts
depend on shapes alone:
they are the same on every machine.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_FREE = {
    *(
        "cat",
        "clone",
        "copy_",
        "fill_",
        "empty_like",
        "full_like",
        "gather",
        "index",
        "index_copy",
        "index_select",
    ),
    *(
        "masked_scatter",
        "masked_scatter_backward",
        "masked_select",
        "new_empty",
        "new_full",
        "new_ones",
        "new_zeros",
        "nonzero",
    ),
    *("normal_", "ones_like", "slice_backward", "stack", "uniform_", "zero_", "zeros_like"),
    *("_local_scalar_dense", "_to_copy", "_unsafe_view"),
}
_REDUCTIONS = {
    *("amax", "amin", "any", "argmax", "argmin", "max", "mean", "min", "sum"),
    *("smooth_l1_loss", "smooth_l1_loss_backward", "nll_loss_forward", "nll_loss_backward"),
    *("_log_softmax", "_log_softmax_backward_data"),
}
_OF_LISTS = {"_fused_sgd_": 2, "_fused_adam_": 12, "_foreach_add_": 1}
"""Operations on lists of tensors, and what they cost for each element of the first list."""


class FlopCounter(TorchDispatchMode):
    """Counts the operations of all that runs inside ``with FlopCounter() as counter``, in the
    backward pass, too: ``total``.

    Unlike :class:`torch.utils.flop_counter.FlopCounterMode`, which looks at matrix products and
    passes over all that it does not know, it counts what works element by element, and takes the
    unknown for an error.
    """

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry out an operation and add what it costs."""
        result = func(*args, **(kwargs or {}))
        self.total += cost(func, args, result)
        return result


def cost(func: Any, args: Sequence[Any], result: Any) -> int:
    """What an ``OpOverload`` costs with these arguments and this result; an error if the rule does
    not know it.
    """
    name = func.name().split("::")[1].split(".")[0]
    inputs = list(_tensors(args))
    if (
        func.namespace == "profiler"
        or func.is_view
        or name in _FREE
        or not any(map(torch.is_floating_point, inputs))
    ):
        return 0
    if name in ("mm", "addmm"):
        left, right = inputs[-2:]
        return 2 * left.numel() * right.shape[1] + (result.numel() if name == "addmm" else 0)
    if name in ("_embedding_bag", "_embedding_bag_forward_only"):
        weight, indices = inputs[:2]
        return 2 * indices.numel() * weight.shape[1]
    if name == "scatter_reduce":
        return inputs[2].numel()  # self, index, src
    if name in ("index_put", "index_put_"):
        adds = len(args) > 3 and args[3]
        return args[2].numel() if adds else 0
    if name in _OF_LISTS:
        return _OF_LISTS[name] * sum(tensor.numel() for tensor in args[0])
    if name in _REDUCTIONS:
        return inputs[0].numel()
    if torch.Tag.pointwise in func.tags:
        return result.numel()
    raise NotImplementedError(f"the cost of {func} is not known; name it in {__name__}")


def _tensors(args: Sequence[Any]) -> Iterator[Tensor]:
    for item in args:
        if isinstance(item, Tensor):
            yield item
        elif isinstance(item, list | tuple):
            yield from _tensors(item)
