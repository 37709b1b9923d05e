"""The optimisers step as PyTorch's own."""

import pytest
import torch

from feddep.training.learner import OPTIMIZERS

PYTORCH = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1}])
def test_steps_are_those_of_pytorch(name: str, options: dict[str, float]):
    weights = []
    for optimizer in (OPTIMIZERS[name], lambda *a, **k: PYTORCH[name](*a, fused=True, **k)):
        weight = torch.nn.Parameter(torch.linspace(-1, 1, 12))
        made = optimizer([weight], lr=0.1, **options)
        for _ in range(5):
            made.zero_grad()
            (weight**3).sum().backward()
            made.step()
        weights.append(weight.detach())
    assert torch.equal(*weights)
    assert not torch.equal(weights[0], torch.linspace(-1, 1, 12))
