"""The two metrics."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from feddep.training.evaluator import score


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=20))
def test_the_area_under_the_roc_curve_counts_pairs(answers: list[tuple[int, bool]]) -> None:
    """It is the share of pairs, one node of each class, of which the right one has the larger
    score, ties counted half.
    """
    margins, labels = zip(*answers, strict=True)
    logits = torch.tensor([[1.0, 1.0 + margin] for margin in margins])
    (found, nodes), _ = score(logits, torch.tensor(labels).long(), "roc_auc")
    of = {which: [margin for margin, label in answers if label is which] for which in (False, True)}
    pairs = [
        float(high > low) + 0.5 * (high == low)
        for low, high in itertools.product(of[False], of[True])
    ]
    if pairs:
        assert found / nodes == pytest.approx(sum(pairs) / len(pairs))
        assert nodes == len(answers)
    else:
        assert (found, nodes) == (0, 0)


def test_accuracy_counts_nodes() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0], [3.0, 1.0, 2.0], [0.0, 1.0, 0.0]])
    assert score(logits, torch.tensor([2, 1, 1]))[0] == (2, 3)
