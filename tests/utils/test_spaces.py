"""Search spaces, beside slow and obvious computations."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep.utils import spaces
from feddep.utils.spaces import By, Range

SHARES = st.floats(0, 1, exclude_max=True)
ENDS = st.tuples(st.integers(1, 10**5), st.integers(1, 10**5)).map(sorted)
SPACE: spaces.Space = {
    "optimizer": ("adam", "sgd"),
    "rate": By("optimizer", {"adam": spaces.log(0.001, 0.1), "sgd": spaces.log(0.1, 10)}),
    "epochs": spaces.integers(1, 10),
    "width": (None, 16, 64),
}


@given(ENDS, SHARES, st.booleans())
def test_a_share_of_a_range(ends: list[int], share: float, log: bool):
    low, high = ends[0] / 1000, ends[1] / 1000
    found = Range(low, high, log).at(share)
    assert low <= found <= high
    if log:
        expected = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
    else:
        expected = (1 - share) * low + share * high
    assert found == pytest.approx(expected, rel=0.006)


@pytest.mark.parametrize(("log", "often"), [(False, [100] * 4), (True, [200, 117, 83])])
def test_integers_have_equal_shares_of_what_is_spread_evenly(log: bool, often: list[int]):
    axis = spaces.integers(1, len(often), log)
    counted = [axis.at((k + 0.5) / 400) for k in range(400)]
    assert [counted.count(number) for number in range(1, len(often) + 1)] == often


@given(st.lists(SHARES, min_size=4, max_size=4))
def test_a_point_is_in_its_space(shares: list[float]):
    chosen = spaces.point(SPACE, shares)
    assert list(chosen) == list(SPACE)
    assert chosen["optimizer"] == ("adam" if shares[0] < 0.5 else "sgd")
    assert (chosen["rate"] <= 0.1) == (chosen["optimizer"] == "adam") or chosen["rate"] == 0.1
    assert chosen["width"] == (None, 16, 64)[math.floor(shares[3] * 3)]
    assert spaces.outside(SPACE, chosen) == []


@pytest.mark.parametrize(
    ("changed", "outside", "edge"),
    [
        ({}, [], []),
        ({"optimizer": "sgd"}, ["rate"], ["rate"]),
        ({"rate": 0.0011}, [], ["rate"]),
        ({"rate": 0.09}, [], ["rate"]),
        ({"rate": 0.0}, ["rate"], ["rate"]),
        ({"epochs": 1}, [], ["epochs"]),
        ({"epochs": 10}, [], ["epochs"]),
        ({"width": 8}, ["width"], []),
    ],
)
def test_what_is_outside_or_at_the_edge(
    changed: dict[str, Any], outside: list[str], edge: list[str]
):
    chosen = {"optimizer": "adam", "rate": 0.01, "epochs": 3, "width": 16, **changed}
    assert spaces.outside(SPACE, chosen) == outside
    assert spaces.at_edge(SPACE, chosen) == edge
