"""Splits: disjoint, uniform, of the right sizes, and the same for a client as for the whole
graph.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feddep.graph.split import Split, class_balanced_split, random_split
from feddep.utils.errors import ConfigError

FRACTIONS = {"train": 0.6, "val": 0.2, "test": 0.2}


def parts(split: Split) -> list[np.ndarray]:
    return [split.train, split.val, split.test]


def assert_same(split: Split, other: Split) -> None:
    for part, twin in zip(parts(split), parts(other), strict=True):
        np.testing.assert_array_equal(part, twin)
        assert part.dtype == twin.dtype == np.int64


@st.composite
def shares(draw):
    """Fractions in hundredths that sum to 1, as a person would write them."""
    first = draw(st.integers(5, 90))
    second = draw(st.integers(5, 95 - first))
    return {"train": first / 100, "val": second / 100, "test": (100 - first - second) / 100}


@given(st.integers(40, 500), shares(), st.integers(0, 2**40))
def test_every_node_is_in_exactly_one_part(n, fractions, seed):
    split = random_split(n, fractions, seed)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts(split))), np.arange(n))
    for name, part in zip(fractions, parts(split), strict=True):
        assert (np.diff(part) > 0).all()
        assert abs(len(part) - n * fractions[name]) < 1 + 1e-6


@pytest.mark.parametrize(
    ("n", "fractions", "expected"),
    [
        *(
            (10, (0.6, 0.2, 0.2), [6, 2, 2]),
            (2708, (0.6, 0.2, 0.2), [1624, 542, 542]),
            (3, (0.6, 0.2, 0.2), [1, 1, 1]),
        ),
        *((100, (0.2, 0.1, 0.3), [20, 10, 30]), (18333, (0.6, 0.2, 0.2), [10999, 3667, 3667])),
        # 0.29 · 100 is 28.999999999999996 in floating point, and three times 1/3 need not be 1.
        *((100, (0.29, 0.7, 0.01), [29, 70, 1]), (99999, (0.333333333333,) * 3, [33333] * 3)),
    ],
)
def test_sizes(n, fractions, expected):
    assert [
        len(part)
        for part in parts(random_split(n, dict(zip(FRACTIONS, fractions, strict=True)), 0))
    ] == expected


def test_each_node_is_as_likely_as_any_other():
    n, draws = 20, 2000
    counts = np.zeros(n)
    for seed in range(draws):
        counts[random_split(n, FRACTIONS, seed).train] += 1
    # Standard deviation of a count: sqrt(2000 · 0.6 · 0.4) = 22.
    assert np.abs(counts - 0.6 * draws).max() < 5 * 22


@pytest.mark.parametrize(
    "fractions",
    [FRACTIONS | wrong for wrong in ({"train": 0.0}, {"test": -0.2}, {"val": 0.3}, {"val": 0.001})],
)
def test_wrong_fractions(fractions):
    with pytest.raises(ConfigError):
        random_split(100, fractions, 0)


@given(st.integers(0, 1000), st.permutations(range(30)), st.integers(0, 30))
def test_restricted_ids_name_the_same_nodes(seed, order, count):
    split = random_split(30, FRACTIONS, seed)
    nodes = np.array(order[:count], dtype=np.int64)
    local = split.restrict(nodes)
    for part, mine in zip(parts(split), parts(local), strict=True):
        assert mine.dtype == np.int64
        assert (np.diff(mine) > 0).all()
        assert set(nodes[mine]) == set(part) & set(nodes)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 9))
def test_fewer_labels_are_some_of_the_labels(small, large, seed):
    split = random_split(100, {"train": 0.3, "val": 0.3, "test": 0.4}, 0)
    few, many = (split.labelled(count / 100, seed) for count in sorted((small, large)))
    assert len(few.train) == min(small, large)
    assert set(few.train) <= set(many.train) <= set(split.train)
    assert (np.diff(few.train) > 0).all()
    assert_same(Split(split.train, few.val, few.test), split)
    assert split.labelled(None, seed) is split


@pytest.mark.parametrize("share", [0.001, 0.31])
def test_too_few_or_too_many_labels(share):
    split = random_split(100, {"train": 0.3, "val": 0.3, "test": 0.4}, 0)
    with pytest.raises(ConfigError):
        split.labelled(share, 0)


@given(st.lists(st.integers(0, 3), min_size=40, max_size=120), st.integers(0, 9))
def test_a_class_balanced_split_is_what_it_says(labels, seed):
    labels = np.array(labels)
    split = class_balanced_split(labels, 4, FRACTIONS, seed)
    n, each = len(labels), int(len(labels) * FRACTIONS["train"] / 4)
    assert np.bincount(labels[split.train], minlength=4).tolist() == [
        min(each, count) for count in np.bincount(labels, minlength=4)
    ]
    assert len(split.val) == round(n * FRACTIONS["val"])
    assert sorted(np.concatenate([split.train, split.val, split.test])) == list(range(n))
    assert_same(split, class_balanced_split(labels, 4, FRACTIONS, seed))


def test_sizes_of_the_published_code():
    """232 of each class and 542 validation nodes on Cora; a class of 180 nodes is in neither
    validation nor test.
    """
    labels = np.repeat(np.arange(7), [351, 217, 418, 818, 426, 298, 180])
    split = class_balanced_split(labels, 7, {"train": 0.6, "val": 0.2, "test": 0.2}, 0)
    assert np.bincount(labels[split.train]).tolist() == [232, 217, 232, 232, 232, 232, 180]
    assert (len(split.val), set(labels[split.test])) == (542, {0, 2, 3, 4, 5})
    with pytest.raises(ConfigError):
        class_balanced_split(np.arange(4), 4, {"train": 1.0, "val": 0.2, "test": 0.2}, 0)
