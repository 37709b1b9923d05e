import torch
from torch import nn

from feddep.training.history import History


def test_the_first_of_the_best_rounds_counts_and_its_weights_are_kept():
    model, history = nn.Linear(1, 1, bias=False), History()
    for weight, validation, test in [(1, 0.5, 0.9), (2, 0.7, 0.6), (3, 0.7, 0.8), (4, 0.6, 1.0)]:
        nn.init.constant_(model.weight, weight)
        history.record(model, 0.0, validation, test)
    assert history.best_round == 2
    assert history.best_test == 0.6
    assert torch.equal(history.best_weights["weight"], torch.tensor([[2.0]]))
