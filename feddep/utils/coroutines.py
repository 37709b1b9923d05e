"""Functions that run side by side in one thread, and wait to be answered at once."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from greenlet import getcurrent, greenlet

T = TypeVar("T")
Answer = Callable[[list[Any]], Sequence[Any]]
"""From the questions of all functions that wait to their answers, in the same order."""


class _Coroutine(greenlet):
    """One of the functions; what its parent gets of it is a question, or, once it is dead, what the
    function returned.
    """


def waiting_allowed() -> bool:
    """Whether the caller runs within :func:`run_together`, and so may :func:`ask`."""
    return isinstance(getcurrent(), _Coroutine)


def ask(question: Any) -> Any:
    """Wait until all functions that run together have asked or returned; the answer."""
    gradients = torch.is_grad_enabled()
    answer = getcurrent().parent.switch(question)
    torch.set_grad_enabled(gradients)
    return answer


def run_together(functions: Sequence[Callable[[], T]], answer: Answer) -> list[T]:
    """Run each function until it asks or returns; answer all questions at once, and go on until
    each has returned.

    An exception in a function, or in ``answer``, ends all.

    Returns:
        What the functions return.
    """
    gradients = torch.is_grad_enabled()

    def switch(coroutine: _Coroutine, *value: Any) -> Any:
        try:
            return coroutine.switch(*value)
        finally:  # what it has set holds for itself
            torch.set_grad_enabled(gradients)

    coroutines = [_Coroutine(function) for function in functions]
    results = [switch(coroutine) for coroutine in coroutines]
    while waiting := [k for k, coroutine in enumerate(coroutines) if not coroutine.dead]:
        answers = answer([results[k] for k in waiting])
        for k, each in zip(waiting, answers, strict=True):
            results[k] = switch(coroutines[k], each)
    return results
