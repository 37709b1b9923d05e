import torch
from torch import nn

from feddep.training.evaluation import Counts
from feddep.training.history import History


def validated(*right: int) -> Counts:
    """Counts of clients with ten validation nodes each."""
    return Counts(tuple((each, 10) for each in right), ((1, 1),) * len(right), ())


def test_the_first_of_the_best_rounds_counts_and_its_weights_are_kept():
    model, history = nn.Linear(1, 1, bias=False), History()
    for weight, right in [(1, 5), (2, 7), (3, 7), (4, 6)]:
        nn.init.constant_(model.weight, weight)
        history.keep([model], [(1, 0.0)], validated(right))
        history.record([(1, 0.0)], validated(right), validated(0))
    assert history.judged[0].rounds == (2,)
    assert torch.equal(history.best_weights[0]["weight"], torch.tensor([[2.0]]))


def test_without_validation_nodes_it_is_the_last_round():
    model, history = nn.Linear(1, 1, bias=False), History()
    none = Counts(((0, 0),), ((1, 1),), ())
    for weight in (1, 2, 3):
        nn.init.constant_(model.weight, weight)
        history.keep([model], [(1, 0.0)], none)
        history.record([(1, 0.0)], none, none)
    assert history.judged[0].rounds == (3,)
    assert torch.equal(history.best_weights[0]["weight"], torch.tensor([[3.0]]))


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
