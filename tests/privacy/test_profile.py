"""The exact guarantee on every short list, in fractions, from the law that
tests/graph/test_sampling.py holds the sampler to.
"""

from fractions import Fraction

import pytest

from feddep.privacy.accountant import PrivacyError
from feddep.privacy.profile import exact_at_node, exact_guarantee
from sampling_laws import enumerated_delta, multisets, repeated, sequences

FANOUTS = range(1, 6)
LENGTHS = range(7)
FACTORS = [Fraction(1), Fraction(3, 2), Fraction(7), Fraction(10**6)]


def shorter(neighbours: list[int]) -> list[list[int]]:
    """The list without one of its neighbours, for each of them."""
    return [neighbours[:rank] + neighbours[rank + 1 :] for rank in range(len(neighbours))]


@pytest.mark.parametrize("fanout", FANOUTS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("ordered", [False, True])
def test_the_exact_delta_is_that_of_the_enumeration_for_every_epsilon(length, fanout, ordered):
    law = sequences if ordered else multisets
    longer = list(range(length + 1))
    expected = exact_guarantee(length, fanout, ordered=ordered)
    assert expected.epsilon == 0
    for factor in FACTORS:
        deltas = [
            enumerated_delta(law(longer, fanout), law(other, fanout), factor)
            for other in shorter(longer)
        ]
        assert float(max(deltas)) == pytest.approx(expected.delta, abs=1e-13)
        if not ordered:
            assert len(set(deltas)) == 1  # whichever neighbour it is


@pytest.mark.parametrize(
    ("length", "fanout", "times"),
    [(0, 2, 2), (1, 3, 3), (2, 2, 2), (3, 2, 3), (3, 3, 2), (4, 2, 2), (3, 4, 2)],
)
@pytest.mark.parametrize("factor", FACTORS)
def test_several_samplings(length, fanout, times, factor):
    longer, other = (repeated(multisets(range(n), fanout), times) for n in (length + 1, length))
    assert float(enumerated_delta(longer, other, factor)) == pytest.approx(
        exact_guarantee(length, fanout, times).delta, abs=1e-13
    )


@pytest.mark.parametrize("fanout", FANOUTS)
@pytest.mark.parametrize("degree", range(7))
def test_a_node_may_lose_a_neighbour_or_gain_one(degree, fanout):
    laws = {
        length: multisets(range(length), fanout) for length in range(max(degree - 1, 0), degree + 2)
    }
    worst = max(float(enumerated_delta(laws[degree], laws[other], Fraction(1))) for other in laws)
    assert exact_at_node(degree, fanout).delta == pytest.approx(worst)
    assert exact_at_node(degree, fanout, 3).log_rest == pytest.approx(
        3 * exact_at_node(degree, fanout).log_rest
    )


def test_counts_out_of_range_are_refused():
    for wrong in ((-1, 2), (2, 0), (2, 2, 0)):
        with pytest.raises(PrivacyError):
            exact_guarantee(*wrong)
