"""What a noisy client sends."""

import math

import pytest
import torch

from divided import random_task, trained
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS
from feddep.methods.basic.fedavg import new_client
from feddep.methods.shared.noisy_client import NoisyClient
from feddep.privacy.dpsgd import Privacy
from feddep.utils.seeding import torch_generator


def sent_update(task, privacy=None):
    """What client 0 sends after a round, less what it was given."""
    model = trained(task)
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    part = task.subgraphs()[0]
    plain = new_client(task, 0, part, boundary)
    client = plain
    if privacy is not None:
        parts = (plain.model, plain.learner, plain.evaluator, part[1], task.setting, boundary)
        client = NoisyClient(0, *parts, privacy=privacy, noise=torch_generator(0, "noise"))
    client.load(model.state_dict())
    update = client.update()
    given = torch.cat([tensor.flatten() for tensor in model.state_dict().values()])
    return torch.cat([tensor.flatten() for tensor in update.weights.values()]) - given, update.loss


def test_without_noise_or_clipping_it_sends_what_any_client_sends():
    task = random_task()
    plain, report = sent_update(task)
    noisy, same = sent_update(task, Privacy(0.0, 1e6))
    torch.testing.assert_close(noisy, plain, rtol=1e-5, atol=1e-6)
    assert report == same


def test_a_long_update_is_shortened_and_keeps_its_direction():
    task = random_task()
    plain, _ = sent_update(task)
    clipped, _ = sent_update(task, Privacy(0.0, float(plain.norm()) / 4))
    torch.testing.assert_close(clipped, plain / 4, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("sigma", "clip"), [(2.0, 1.0), (0.5, 3.0)])
def test_the_noise_has_the_standard_deviation_sigma_times_clip(sigma, clip):
    task = random_task()
    clean, _ = sent_update(task, Privacy(0.0, clip))
    noisy, _ = sent_update(task, Privacy(sigma, clip))
    noise = (noisy - clean).double()
    error = sigma * clip * math.sqrt(2 / len(noise))  # of a standard deviation that is estimated from so many numbers
    assert abs(float(noise.std()) - sigma * clip) < 5 * error
