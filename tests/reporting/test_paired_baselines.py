"""Which baseline the methods of a paired study are compared with."""

import pytest

from feddep.reporting.studies.paired import _references

BY_BUDGET = [
    f"{method},delta=1e-06,epsilon={budget}{rest}"
    for method, rest in (("gap", ""), ("vesper_gin", ",weights=frozen"))
    for budget in (2, 8)
]
BY_ENCODINGS = [
    f"{method}{encodings},epsilon=2"
    for method in ("gap", "vesper_gin")
    for encodings in ("", ",encodings=true")  # a default that is not spelled out is a value
]


@pytest.mark.parametrize("names", [BY_BUDGET, BY_ENCODINGS])
def test_variants_of_the_baseline_are_paired_by_the_options_that_they_vary(
    names: list[str],
) -> None:
    assert _references(names) == {names[2]: names[0], names[3]: names[1]}


@pytest.mark.parametrize(
    "names",
    [
        ["fedavg", "feddep"],
        ["feddep,depth=1", "fedavg", "feddep"],
        ["gap,epsilon=2", "gap,epsilon=8"],
        ["gap,epsilon=2", "gap,epsilon=8", "vesper_gin,epsilon=4"],
    ],
)
def test_otherwise_the_first_is_the_baseline_of_all(names: list[str]) -> None:
    assert _references(names) == dict.fromkeys(names[1:], names[0])
