"""Features from prototypes, properties of clients."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from small import task_of

from feddep.methods.feddep import FedDEPParameters
from feddep.methods.feddep.prototypes import Prototypes
from studies.privacy_audit import properties, reconstruction


def test_a_perfect_reconstruction_and_a_guess():
    graph, _ = task_of().subgraphs()[0]
    x = graph.features.toarray()
    cluster = np.arange(graph.num_nodes) % 5
    means, guess = np.array([x[cluster == c].mean(axis=0) for c in range(5)]), x.mean(axis=0)
    prototypes = Prototypes(torch.zeros(5, 2), torch.from_numpy(cluster))
    perfect = reconstruction.evaluate(graph, prototypes, means, guess)
    assert (perfect["error"], perfect["chance"]) == (pytest.approx(0, abs=1e-10), pytest.approx(1 / 5))
    assert reconstruction.evaluate(graph, prototypes, np.tile(guess, (5, 1)), guess)["error"] == pytest.approx(1)
    each = Prototypes(torch.zeros(len(x), 2), torch.arange(len(x)))
    assert reconstruction.evaluate(graph, each, x, guess)["match"] > 0.95


def test_the_map_is_that_of_a_ridge_regression_and_its_penalty_that_of_other_clients():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 30, 4)), rng.normal(size=(3, 30, 7))
    found = [
        Ridge(p).fit(np.concatenate(np.delete(x, k, 0)), np.concatenate(np.delete(y, k, 0)))
        for p in reconstruction.PENALTIES
        for k in range(3)
    ]
    errors = [((model.predict(x[k % 3]) - y[k % 3]) ** 2).sum() for k, model in enumerate(found)]
    best = reconstruction.PENALTIES[int(np.reshape(errors, (-1, 3)).sum(axis=1).argmin())]
    expected = Ridge(best).fit(np.concatenate(x), np.concatenate(y)).predict(x[0])
    assert np.allclose(reconstruction.fit(list(x), list(y))(x[0]), expected)


def test_more_prototypes_say_more_to_who_has_the_encoder(monkeypatch):
    monkeypatch.setattr(reconstruction, "COUNTS", (3, 10))
    rows = reconstruction.measure(task_of(), FedDEPParameters(embedding=16, pretraining_epochs=3))
    assert len(rows) == 3 * 3 * 3
    summary = reconstruction.summary(rows)
    assert [row["prototypes"] for row in summary[:3]] == [3, 10, None]
    (known,) = (row for row in summary if (row["prototypes"], row["knowledge"]) == (None, "the client's encoder"))
    assert known["error"] < 1
    assert known["match"] > 1.5 * known["chance"]
    assert all(row["error_low"] <= row["error"] <= row["error_high"] for row in summary)


def test_a_property_that_shows_is_found_and_one_that_does_not_is_not():
    rng = np.random.default_rng(0)
    positive, attacked = rng.random(120) < 0.5, np.arange(120) % 2 == 1
    noise = rng.normal(size=(120, 3))
    assert properties.infer(np.column_stack([noise, 9 * positive]), positive, attacked, 0)["auc"] > 0.99
    found = properties.infer(noise, positive, attacked, 0)
    assert found["auc_low"] < 0.5 < found["auc_high"]
