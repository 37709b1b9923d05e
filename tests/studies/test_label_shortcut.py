"""Labels read off prototypes and by classifiers: by hand, and as the run's own classifier reads them."""

import dataclasses

import numpy as np
import pytest
import torch
from small import DGEN, case_of, small_task

from studies.label_shortcut.measure import halves, meanings, nearest
from studies.measuring import tables_of


def test_every_node_is_read_once_by_each_and_by_the_classifier_of_the_best_round():
    case = case_of("feddep", small_task(), **{**DGEN, "pretraining_epochs": 2, "count_bias": 1.0})
    outcome = case.method.run(case.task, case.parameters)
    (measured,) = tables_of("label_shortcut", dataclasses.replace(case, weights=outcome.weights())).values()
    rows = {(row["reader"], row["input"], row["nodes"]): row for row in measured}
    sizes = {part: len(getattr(case.task.split, part)) for part in ("train", "val", "test")}
    for (reader, source, part), row in rows.items():
        if (reader, source) != ("prototype", "generated"):
            assert row["count"] == sizes[part]
        assert 0 <= row["correct"] <= row["count"]
    readers = [("prototype", "embedding"), ("prototype", "generated")]
    readers += [("classifier", source) for source in ("generated", "zero", "permuted")]
    expected = {(*each, part) for each in readers for part in sizes} | {("halves", each, "train") for each in ("seen", "unseen")}
    assert set(rows) == expected
    row = rows["classifier", "generated", "val"]  # by this accuracy the round was chosen
    assert row["correct"] / row["count"] == pytest.approx(max(outcome.histories[0].validation))
    assert rows["classifier", "zero", "val"] != row or rows["classifier", "permuted", "val"] != row


def test_halves_share_no_training_node():
    task = small_task()
    (first, second), (third, fourth) = halves(task)
    assert sorted([*first.split.train, *second.split.train]) == task.split.train.tolist()
    assert (third, fourth) == (second, first)
    assert first.split.val.tolist() == task.split.val.tolist()
    assert not first.step_results


def test_a_prototype_stands_for_the_majority_of_its_training_nodes():
    prototypes = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = torch.tensor([[1.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0], [0.5, 0.5], [1.0, 9.0]])
    cluster = nearest(points, prototypes)
    assert cluster.tolist() == [0, 0, 1, 1, 0, 2]
    labels = np.array([2, 2, 1, 0, 0, 1])
    assert meanings(cluster, labels, np.array([0, 1, 3, 4]), 3).tolist() == [2, 0, -1]
