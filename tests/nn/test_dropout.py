from typing import Any

import pytest
import torch

from feddep.nn.dropout import drop, dropout_mask, rectify_and_drop_


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.9])
def test_a_mask_keeps_the_mean_and_drops_the_share_asked_for(probability):
    mask = dropout_mask(torch.empty(1000, 401), probability, torch.Generator().manual_seed(0))
    assert set(mask.unique().tolist()) <= {0.0, float(torch.tensor(1.0) / (1 - probability))}
    share = (mask == 0).float().mean().item()
    assert (
        abs(share - probability)
        < 4.5 * (probability * (1 - probability) / mask.numel()) ** 0.5 + 2**-17
    )


def test_columns_and_rows_are_independent():
    mask = dropout_mask(torch.empty(40_000, 8), 0.5, torch.Generator().manual_seed(1)) > 0
    correlation = torch.corrcoef(mask.T.float())
    assert (correlation - torch.eye(8)).abs().max() < 4.5 / 40_000**0.5


@pytest.mark.parametrize("probability", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("block", [4, 16, 2**18])
def test_rectifying_in_place_draws_and_differentiates_as_two_steps_do(
    probability, block, monkeypatch
):
    """To the last bit, in blocks whose ends are not those of rows."""
    monkeypatch.setattr("feddep.nn.dropout._BLOCK", block)
    inputs = torch.randn(7, 5, generator=torch.Generator().manual_seed(1)).requires_grad_()
    weights = torch.randn(7, 5, generator=torch.Generator().manual_seed(2))

    def of(how: Any) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = how(inputs * 1.5, probability, torch.Generator().manual_seed(3))
        return hidden, torch.autograd.grad((hidden * weights).sum(), inputs)[0]

    theirs = of(lambda x, *how: drop(x.relu(), *how))
    torch.testing.assert_close(of(rectify_and_drop_), theirs, rtol=0, atol=0)
    assert torch.equal(rectify_and_drop_(inputs * 1.5, probability, None), (inputs * 1.5).relu())
