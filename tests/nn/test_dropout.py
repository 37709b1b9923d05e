import pytest
import torch

from feddep.nn.dropout import dropout_mask


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.9])
def test_a_mask_keeps_the_mean_and_drops_the_share_asked_for(probability):
    mask = dropout_mask(torch.empty(1000, 401), probability, torch.Generator().manual_seed(0))
    assert set(mask.unique().tolist()) <= {0.0, float(torch.tensor(1.0) / (1 - probability))}
    share = (mask == 0).float().mean().item()
    assert abs(share - probability) < 4.5 * (probability * (1 - probability) / mask.numel()) ** 0.5 + 2**-17


def test_columns_and_rows_are_independent():
    mask = dropout_mask(torch.empty(40_000, 8), 0.5, torch.Generator().manual_seed(1)) > 0
    correlation = torch.corrcoef(mask.T.float())
    assert (correlation - torch.eye(8)).abs().max() < 4.5 / 40_000**0.5
