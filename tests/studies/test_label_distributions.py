"""Labels held and predicted: by hand on a small graph, as trained models of a run predict them, and on the page."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from small import case_of, measured, of_run, page, small_task

from feddep.experiment.plan import Run
from feddep.graph.partition import Partition
from feddep.utils.errors import ConfigError
from graphs import random_graph
from studies.label_distributions.measure import _by_model, held, predicted
from studies.label_distributions.page import figure, summarise
from studies.measuring import frame

CLIENTS = 3
PREDICTED = {"global": [[5, 5]], "local": [[9, 1], [1, 9]], "fedavg": [[6, 4]]}
"""Of ten test nodes, how many are predicted to be of the first and of the second class, by each model."""


def test_every_client_s_labels_are_counted():
    graph = dataclasses.replace(random_graph(5, 4), labels=np.array([0, 2, 2, 0, 0]))
    assert held(graph, Partition(np.array([0, 0, 0, 1, 1]), 2)).tolist() == [[1, 0, 2], [2, 0, 0]]


@pytest.mark.parametrize(("name", "models"), [("global", 1), ("local", CLIENTS), ("fedavg", 1)])
def test_predictions_are_those_of_the_best_round(name, models):
    case = case_of(name, small_task(None if name == "global" else CLIENTS))
    outcome, task = case.method.run(case.task, case.parameters), case.task
    weights = outcome.weights()
    counts = predicted(task, weights)
    assert counts.shape == (models, task.graph.num_classes)
    assert (counts.sum(axis=1) == len(task.split.test)).all()
    for history, of_model, row in zip(outcome.histories, _by_model(weights), counts, strict=True):
        model = task.new_model()
        model.load_state_dict(of_model)
        assert task.test(model).test == history.best_test
        classes = task.evaluator.logits(model).argmax(dim=1).numpy()[task.split.test]
        assert row.tolist() == [(classes == label).sum() for label in range(task.graph.num_classes)]
    rows = measured("label_distributions", dataclasses.replace(case, weights=weights))
    nodes = rows.groupby("what")["nodes"].sum().to_dict()
    of_clients = {} if name == "global" else {"held": 240}
    assert nodes == {"true": len(task.split.test), "predicted": models * len(task.split.test), **of_clients}


def test_a_classifier_that_reads_more_is_refused():
    few = {"prototypes": 3, "embedding": 4, "pretraining_epochs": 1, "generator_epochs": 1}
    case = case_of("feddep", small_task(), **few)
    with pytest.raises(ConfigError):
        predicted(case.task, case.method.run(case.task, case.parameters).weights())


@pytest.fixture
def counts() -> pd.DataFrame:
    """Three methods, two seeds."""
    rows = []
    for name, seed in ((name, seed) for name in PREDICTED for seed in (3, 4)):
        run = Run("quick", "cora", None if name == "global" else 2, name, seed)
        tables = {"true": [[5, 5]], "predicted": PREDICTED[name]}
        if run.clients is not None:
            tables["held"] = [[20, 0], [10, 30]]
        rows += [
            {**of_run(run), "what": what, "number": number, "label": label, "nodes": nodes}
            for what, models in tables.items()
            for number, model in enumerate(models)
            for label, nodes in enumerate(model)
        ]
    return frame(rows)


def test_distances_by_hand(counts):
    summary = summarise(counts)
    assert [None if pd.isna(name) else name for name in summary["method"]] == ["global", None, "local", "fedavg"]
    assert summary["mean"].tolist() == pytest.approx([0.0, (0.5 + 0.25) / 2, 0.4, 0.1])
    assert summary["seeds"].tolist() == [2, 2, 2, 2]  # two methods tell what clients hold, and it counts once
    assert summary["std"].tolist() == pytest.approx([0, 0, 0, 0])


def test_the_figure_shows_the_first_seed(counts):
    drawn = figure(counts)
    left, right = drawn.axes
    assert left.get_title(loc="left") == "Cora, M=2: held"
    assert [label.get_text() for label in left.get_yticklabels()] == ["all nodes", "client 1", "client 2"]
    names = ["test nodes", "Global", "Local, client 1", "Local, client 2", "FedAvg"]
    assert [label.get_text() for label in right.get_yticklabels()] == names
    first_class = [bar.get_width() for bar in right.patches[::2]]
    assert first_class == pytest.approx([0.5, 0.5, 0.9, 0.1, 0.6])


def test_the_page(counts):
    made = page("label_distributions", label_distributions=counts.to_dict("records"))
    assert "0.4000 ± 0.0000" in made["page.md"]
    assert len(made["table.csv"]) == 4
