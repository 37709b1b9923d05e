import pytest
import torch
from torch import nn

from feddep.training.evaluation import Counts
from feddep.training.history import History


def validated(*right: int) -> Counts:
    """Counts of clients with ten validation nodes each."""
    return Counts(tuple((each, 10) for each in right), ((1, 1),) * len(right), ())


@pytest.mark.parametrize(
    ("counts", "best"),
    [([validated(each) for each in (5, 7, 7, 6)], 2), ([Counts(((0, 0),), ((1, 1),), ())] * 3, 3)],
    ids=["first_of_the_best", "last_without_validation_nodes"],
)
def test_the_best_round_counts_and_its_weights_are_kept(counts: list[Counts], best: int):
    model, history = nn.Linear(1, 1, bias=False), History()
    for weight, each in enumerate(counts, 1):
        nn.init.constant_(model.weight, weight)
        history.keep([model], [(1, 0.0)], each)
        history.record([(1, 0.0)], each, each)
    assert history.judged[0].rounds == (best,)
    assert torch.equal(history.best_weights[0]["weight"], torch.tensor([[float(best)]]))


def test_who_is_judged_says_whose_validation_chooses():
    before, after = [validated(9, 1), validated(1, 7)], [validated(2, 9), validated(3, 1)]
    for evaluation, together, rounds in [
        ("global", True, [(1,)]),
        ("local_before", False, [(1, 2)]),
        ("local_after", False, [(2, 1)]),
        ("owners", True, [(1,), (1,)]),
    ]:
        history = History(evaluation, together, [[(1, 0.0)] * 2] * 2, before, after)
        assert [judged.rounds for judged in history.judged] == rounds
