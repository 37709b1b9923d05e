"""PyTorch's and NumPy's global state while this package computes, whatever a caller has set."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch
from threadpoolctl import threadpool_limits


@contextmanager
def default_state(threads: int) -> Iterator[None]:
    """A context with so many threads, BLAS's included, and, for all else that changes numbers or
    costs gradients, the libraries' own defaults; the caller's state comes back after it.
    """
    found = torch.get_num_threads(), torch.get_default_dtype()
    precision = torch.get_float32_matmul_precision()
    with ExitStack() as contexts:
        contexts.callback(torch.set_num_threads, found[0])
        contexts.callback(torch.set_default_dtype, found[1])
        contexts.callback(torch.set_float32_matmul_precision, precision)
        torch.set_num_threads(threads)
        contexts.enter_context(threadpool_limits(threads))
        torch.set_default_dtype(torch.float32)
        torch.set_float32_matmul_precision("highest")
        contexts.enter_context(torch.inference_mode(False))
        contexts.enter_context(torch.enable_grad())
        contexts.enter_context(torch.autocast("cpu", enabled=False))
        contexts.enter_context(np.errstate(all="warn", under="ignore"))
        if torch.get_default_device().type != "cpu":  # else every operation would pass a context
            contexts.enter_context(torch.device("cpu"))
        yield
