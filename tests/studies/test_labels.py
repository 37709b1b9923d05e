"""Labels that clients hold, that trained models predict, and that prototypes tell."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from small import DGEN, case_of, measured, of_run, small_task

from feddep.graph.partition import Partition
from graphs import random_graph
from studies.feddep.label_shortcut.measure import halves, meanings, nearest
from studies.fedsage.label_distributions.measure import _by_model, held, predicted
from studies.fedsage.label_distributions.page import summarise
from studies.measuring import frame, tables_of


def test_every_client_s_labels_are_counted():
    graph = dataclasses.replace(random_graph(5, 4), labels=np.array([0, 2, 2, 0, 0]))
    assert held(graph, Partition(np.array([0, 0, 0, 1, 1]), 2)).tolist() == [[1, 0, 2], [2, 0, 0]]


@pytest.mark.parametrize(("name", "models"), [("global", 1), ("local", 3), ("fedavg", 1)])
def test_predictions_are_those_of_the_best_round(name, models):
    case = case_of(name, small_task(None if name == "global" else 3))
    outcome, task = case.method.run(case.task, case.parameters), case.task
    counts = predicted(task, outcome.weights())
    assert counts.shape == (models, task.graph.num_classes)
    (judged,) = outcome.history.judged
    at_best = judged.on_graph(judged.rounds)
    for best, of_model, row in zip(at_best, _by_model(outcome.weights()), counts, strict=True):
        model = task.new_model()
        model.load_state_dict(of_model)
        assert task.test(model).test == best
        classes = task.evaluator.logits(model).argmax(dim=1).numpy()[task.split.test]
        assert row.tolist() == [(classes == label).sum() for label in range(task.graph.num_classes)]
    rows = measured("label_distributions", dataclasses.replace(case, weights=outcome.weights()))
    of_clients = {} if name == "global" else {"held": 240}
    tests = len(task.split.test)
    assert rows.groupby("what")["nodes"].sum().to_dict() == {
        "true": tests,
        "predicted": models * tests,
        **of_clients,
    }


def test_distances_by_hand():
    """Three methods, two seeds: of ten test nodes, how many are predicted to be of the first and of
    the second class.
    """
    rows = []
    for name, models in {"global": [[5, 5]], "local": [[9, 1], [1, 9]], "fedavg": [[6, 4]]}.items():
        tables = {"true": [[5, 5]], "predicted": models} | (
            {} if name == "global" else {"held": [[20, 0], [10, 30]]}
        )
        rows += [
            {
                **of_run(name, seed, None if name == "global" else 2),
                "what": what,
                "number": k,
                "label": label,
                "nodes": nodes,
            }
            for seed in (3, 4)
            for what, counts in tables.items()
            for (k, label), nodes in np.ndenumerate(counts)
        ]
    summary = summarise(frame(rows))
    assert [None if pd.isna(name) else name for name in summary["method"]] == [
        "global",
        None,
        "local",
        "fedavg",
    ]
    assert summary["mean"].tolist() == pytest.approx([0.0, (0.5 + 0.25) / 2, 0.4, 0.1])
    # Two methods tell what clients hold, and it counts once.
    assert summary["seeds"].tolist() == [
        2,
        2,
        2,
        2,
    ]
    assert summary["std"].tolist() == pytest.approx([0, 0, 0, 0])


def test_every_node_is_read_once_by_each_and_by_the_classifier_of_the_best_round():
    case = case_of("feddep", small_task(), **{**DGEN, "pretraining_epochs": 2, "count_bias": 1.0})
    outcome = case.method.run(case.task, case.parameters)
    (measured,) = tables_of(
        "label_shortcut", dataclasses.replace(case, weights=outcome.weights())
    ).values()
    rows = {(row["reader"], row["input"], row["nodes"]): row for row in measured}
    sizes = {part: len(getattr(case.task.split, part)) for part in ("train", "val", "test")}
    expected = {("halves", source, "train"): sizes["train"] for source in ("seen", "unseen")}
    readers = [
        ("prototype", "embedding"),
        *(("classifier", source) for source in ("generated", "zero", "permuted")),
    ]
    expected |= {(*reader, part): size for reader in readers for part, size in sizes.items()}
    expected |= {
        key: row["count"] for key, row in rows.items() if key[:2] == ("prototype", "generated")
    }
    assert {key: row["count"] for key, row in rows.items()} == expected
    row = rows["classifier", "generated", "val"]  # by this accuracy the round was chosen
    assert row["correct"] / row["count"] == pytest.approx(max(outcome.curve["validation"]))
    assert rows["classifier", "zero", "val"] != row or rows["classifier", "permuted", "val"] != row


def test_halves_share_no_training_node():
    task = small_task()
    (first, second), other_way_round = halves(task)
    assert sorted([*first.split.train, *second.split.train]) == task.split.train.tolist()
    assert other_way_round == (second, first)


def test_a_prototype_stands_for_the_majority_of_its_training_nodes():
    prototypes = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = torch.tensor([[1.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0], [0.5, 0.5], [1.0, 9.0]])
    cluster = nearest(points, prototypes)
    assert cluster.tolist() == [0, 0, 1, 1, 0, 2]
    labels = np.array([2, 2, 1, 0, 0, 1])
    assert meanings(cluster, labels, np.array([0, 1, 3, 4]), 3).tolist() == [2, 0, -1]
