"""Functions that wait for one another in one thread."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddep.utils.coroutines import ask, run_together, waiting_allowed


@given(st.lists(st.integers(0, 4), max_size=5))
def test_all_that_wait_are_answered_at_once(turns: list[int]):
    """Function k asks ``turns[k]`` times."""
    asked = []

    def answer(questions: list[tuple[int, int]]) -> list[int]:
        asked.append(questions)
        return [10 * k + turn for k, turn in questions]

    def function(k: int) -> list[int]:
        return [ask((k, turn)) for turn in range(turns[k])]

    found = run_together([lambda k=k: function(k) for k in range(len(turns))], answer)
    assert found == [[10 * k + turn for turn in range(count)] for k, count in enumerate(turns)]
    assert asked == [
        [(k, turn) for k, count in enumerate(turns) if turn < count]
        for turn in range(max(turns, default=0))
    ]


def test_only_within_functions_may_be_asked():
    assert not waiting_allowed()
    assert run_together([waiting_allowed], list) == [True]
    assert not waiting_allowed()


def test_an_exception_ends_all():
    def fails() -> None:
        ask("first")
        raise KeyError

    later = []
    with pytest.raises(KeyError):
        run_together([fails, lambda: later.append(ask("second"))], list)
    assert not later
    with pytest.raises(ZeroDivisionError):
        run_together([lambda: ask("question")], lambda questions: [1 / 0])


def test_gradients_are_as_each_function_had_them():
    def without() -> bool:
        with torch.no_grad():
            ask("question")
            return torch.is_grad_enabled()

    def with_gradients() -> bool:
        ask("question")
        return torch.is_grad_enabled()

    seen = []
    answer = lambda questions: seen.append(torch.is_grad_enabled()) or questions  # noqa: E731
    assert run_together([without, with_gradients, without], answer) == [False, True, False]
    assert seen == [True]
    assert torch.is_grad_enabled()
