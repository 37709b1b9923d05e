"""Labels held and predicted: by hand on a small graph, and as the trained models of a run predict them."""

import dataclasses

import numpy as np
import pytest
from test_frameworks import CLIENTS, problem_of

from feddep import frameworks, label_distributions
from feddep.errors import ConfigError
from feddep.frameworks import feddep
from feddep.partition import Partition
from graphs import random_graph


def test_every_client_s_labels_are_counted():
    graph = dataclasses.replace(random_graph(5, 4), labels=np.array([0, 2, 2, 0, 0]))
    assert label_distributions.held(graph, Partition(np.array([0, 0, 0, 1, 1]), 2)).tolist() == [[1, 0, 2], [2, 0, 0]]


@pytest.mark.parametrize(("name", "models"), [("global", 1), ("local", CLIENTS), ("fedavg", 1)])
def test_predictions_are_those_of_the_best_round(name, models):
    problem, framework = problem_of(name), frameworks.load(name)
    outcome = framework.run(problem, framework.Parameters())
    weights = outcome.weights()
    counts = label_distributions.predicted(problem, weights)
    assert counts.shape == (models, problem.graph.num_classes)
    assert (counts.sum(axis=1) == len(problem.split.test)).all()
    for history, of_model, row in zip(outcome.histories, label_distributions._by_model(weights), counts, strict=True):
        model = problem.new_model()
        model.load_state_dict(of_model)
        assert problem.test(model) == history.best_test
        classes = problem.evaluator.logits(model).argmax(dim=1).numpy()[problem.split.test]
        assert row.tolist() == [(classes == label).sum() for label in range(problem.graph.num_classes)]
    rows = label_distributions.measure(problem, weights)
    whats = ["true", "predicted"] + (["held"] if problem.partition is not None else [])
    assert list(dict.fromkeys(row["what"] for row in rows)) == whats
    assert sum(row["nodes"] for row in rows if row["what"] == "held") == (240 if problem.partition is not None else 0)


def test_a_classifier_that_reads_more_is_refused():
    problem = problem_of("feddep")
    outcome = feddep.run(problem, feddep.Parameters(prototypes=3, embedding=4, pretraining_epochs=1, generator_epochs=1))
    with pytest.raises(ConfigError, match="feddep does not train a plain GraphSAGE"):
        label_distributions.predicted(problem, outcome.weights())
