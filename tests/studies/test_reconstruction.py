"""Features from prototypes, properties of clients."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from small import task_of

from feddep.methods.feddep import FedDEPParameters
from feddep.methods.feddep.prototypes import Prototypes
from feddep.utils.errors import ConfigError
from studies.privacy_audit import properties, reconstruction


def test_a_perfect_reconstruction_and_a_guess():
    graph, _ = task_of().subgraphs()[0]
    x = graph.features.toarray()
    cluster = np.arange(graph.num_nodes) % 5
    means = np.array([x[cluster == c].mean(axis=0) for c in range(5)])
    prototypes = Prototypes(torch.zeros(5, 2), torch.from_numpy(cluster))
    guess = x.mean(axis=0)
    perfect = reconstruction.evaluate(graph, prototypes, means, guess)
    assert perfect["error"] == pytest.approx(0, abs=1e-10)
    assert perfect["chance"] == pytest.approx(1 / 5)
    assert reconstruction.evaluate(graph, prototypes, np.tile(guess, (5, 1)), guess)["error"] == pytest.approx(1)
    each = Prototypes(torch.zeros(len(x), 2), torch.arange(len(x)))
    assert reconstruction.evaluate(graph, each, x, guess)["match"] > 0.95


def test_embeddings_that_are_features_give_them_away():
    task = task_of()
    graph = task.graph
    own, *others = (graph.subgraph(np.arange(start, start + 60)) for start in (0, 60, 120))
    known = [other.features.toarray() for other in others]
    decoder = reconstruction.fit([2 * each + 1 for each in known], known)
    x = own.features.toarray()
    each = Prototypes(torch.zeros(len(x), 2), torch.arange(len(x)))
    found = reconstruction.evaluate(own, each, decoder(2 * x + 1), np.concatenate(known).mean(axis=0))
    assert found["error"] < 0.05
    assert found["match"] > 0.95


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
    task = task_of()
    parameters = FedDEPParameters(embedding=16, pretraining_epochs=3)
    rows = reconstruction.measure(task, parameters)
    assert len(rows) == 3 * 3 * 3
    summary = reconstruction.summary(rows)
    assert [row["prototypes"] for row in summary[:3]] == [3, 10, None]
    at_end = {row["knowledge"]: row for row in summary if row["prototypes"] is None}
    known = at_end["the client's encoder"]
    assert known["error"] < 1
    assert known["match"] > 1.5 * known["chance"]
    assert all(row["error_low"] <= row["error"] <= row["error_high"] for row in summary)
    with pytest.raises(ConfigError):
        reconstruction.measure(task_of(2), parameters)


def test_a_property_that_shows_is_found_and_one_that_does_not_is_not():
    rng = np.random.default_rng(0)
    positive, attacked = rng.random(120) < 0.5, np.arange(120) % 2 == 1
    noise = rng.normal(size=(120, 3))
    assert properties.infer(np.column_stack([noise, 9 * positive]), positive, attacked, 0)["auc"] > 0.99
    found = properties.infer(noise, positive, attacked, 0)
    assert found["auc_low"] < 0.5 < found["auc_high"]
