"""What a noisy client sends."""

import math

import pytest
import torch
from divided import random_problem, trained

from feddep.baselines.noisy_client import NoisyClient, noise_generator
from feddep.federation.boundary import Boundary, schema_of
from feddep.federation.client import REPORTS, Client
from feddep.privacy.dpsgd import Privacy


def sent_update(problem, privacy=None):
    """What client 0 sends after a round, less what it was given."""
    model = trained(problem)
    boundary = Boundary({"model": schema_of(model), **REPORTS})
    graph, split = problem.subgraphs()[0]
    plain = Client.on_subgraph(0, problem.new_model(), graph, split, problem.setting, 0, boundary, "cpu")
    client = plain
    if privacy is not None:
        parts = (plain._model, plain._learner, plain._evaluator, split.val, problem.setting, boundary)
        client = NoisyClient(0, *parts, privacy=privacy, noise=noise_generator(0, 0, "cpu"))
    client.load(model.state_dict())
    weights, report = client.train()
    given = torch.cat([tensor.flatten() for tensor in model.state_dict().values()])
    return torch.cat([tensor.flatten() for tensor in weights.values()]) - given, report


def test_without_noise_or_clipping_it_sends_what_any_client_sends():
    problem = random_problem()
    plain, report = sent_update(problem)
    noisy, same = sent_update(problem, Privacy(0.0, 1e6))
    torch.testing.assert_close(noisy, plain, rtol=1e-5, atol=1e-6)
    assert report == same


def test_a_long_update_is_shortened_and_keeps_its_direction():
    problem = random_problem()
    plain, _ = sent_update(problem)
    clipped, _ = sent_update(problem, Privacy(0.0, float(plain.norm()) / 4))
    torch.testing.assert_close(clipped, plain / 4, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("sigma", "clip"), [(2.0, 1.0), (0.5, 3.0)])
def test_the_noise_has_the_standard_deviation_sigma_times_clip(sigma, clip):
    problem = random_problem()
    clean, _ = sent_update(problem, Privacy(0.0, clip))
    noisy, _ = sent_update(problem, Privacy(sigma, clip))
    noise = (noisy - clean).double()
    error = sigma * clip * math.sqrt(2 / len(noise))  # of a standard deviation that is estimated from so many numbers
    assert abs(float(noise.std()) - sigma * clip) < 5 * error


def test_clients_have_noise_of_their_own():
    draws = [torch.empty(4).normal_(generator=noise_generator(seed, i, "cpu")) for seed, i in ((0, 0), (0, 1), (1, 0), (0, 0))]
    assert torch.equal(draws[0], draws[3])
    assert not torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
