"""Labels read off prototypes and by classifiers: by hand, as the run's own classifier reads them, and as averages on the page."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from small import of_run, small_task

from feddep.experiment.plan import Run
from feddep.measurements import MEASUREMENTS, frame, label_shortcut
from feddep.methods import registry
from feddep.methods.feddep import FedDEPParameters
from feddep.methods.method import run_steps
from feddep.training.task import RunResult, Task
from feddep.utils.errors import ConfigError

SHORTCUT, METHOD = MEASUREMENTS["label_shortcut"], registry.find("feddep")
PARAMETERS = FedDEPParameters(
    prototypes=4, embedding=6, pretraining_epochs=2, generator_epochs=2, hidden_from="all", count_bias=1.0
)
RUN = Run("quick", "tiny", 3, "feddep", 0)


@pytest.fixture(scope="module")
def case() -> tuple[Task, RunResult, dict[tuple[str, str, str], dict[str, Any]]]:
    """A run, what came out of it, and what is measured."""
    task = small_task("feddep")
    outcome = METHOD.run(task, PARAMETERS)
    rows = SHORTCUT.measure(RUN, task, METHOD, PARAMETERS, outcome.weights())["label_shortcut"]
    return task, outcome, {(row["reader"], row["input"], row["nodes"]): row for row in rows}


def test_every_node_is_read_once_by_each(case):
    task, _, rows = case
    sizes = {part: len(getattr(task.split, part)) for part in ("train", "val", "test")}
    for (reader, source, part), row in rows.items():
        if (reader, source) != ("prototype", "generated"):
            assert row["count"] == sizes[part]
        assert 0 <= row["correct"] <= row["count"]
    readers = [("prototype", "embedding"), ("prototype", "generated")]
    readers += [("classifier", source) for source in ("generated", "zero", "permuted")]
    expected = {(*each, part) for each in readers for part in sizes} | {("halves", each, "train") for each in ("seen", "unseen")}
    assert set(rows) == expected


def test_the_classifier_is_that_of_the_best_round(case):
    """On what was generated, the validation accuracy is that by which the round was chosen."""
    _, outcome, rows = case
    row = rows["classifier", "generated", "val"]
    assert row["correct"] / row["count"] == pytest.approx(max(outcome.histories[0].validation))
    assert rows["classifier", "zero", "val"] != row or rows["classifier", "permuted", "val"] != row


def test_generated_neighbours_of_clients_that_generate(case):
    task, _, rows = case
    mended = run_steps(task, PARAMETERS, METHOD.steps(PARAMETERS))["generator"].of_clients("mended")
    filled = sum(
        int(z.any(dim=1)[torch.from_numpy(split.train)].sum()) for z, (_, split) in zip(mended, task.subgraphs(), strict=True)
    )
    assert rows["prototype", "generated", "train"]["count"] == filled


def test_halves_share_no_training_node():
    task = small_task("feddep")
    (first, second), (third, fourth) = label_shortcut.halves(task)
    assert sorted([*first.split.train, *second.split.train]) == task.split.train.tolist()
    assert (third, fourth) == (second, first)
    assert first.split.val.tolist() == task.split.val.tolist()
    assert not first.step_results


def test_a_prototype_stands_for_the_majority_of_its_training_nodes():
    prototypes = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = torch.tensor([[1.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0], [0.5, 0.5], [1.0, 9.0]])
    cluster = label_shortcut.nearest(points, prototypes)
    assert cluster.tolist() == [0, 0, 1, 1, 0, 2]
    labels = np.array([2, 2, 1, 0, 0, 1])
    assert label_shortcut.meanings(cluster, labels, np.array([0, 1, 3, 4]), 3).tolist() == [2, 0, -1]


def test_it_needs_prototypes_and_weights():
    task, without = small_task("feddep"), registry.find("fedsage_plus")
    with pytest.raises(ConfigError, match="fedsage_plus has no step prototypes"):
        SHORTCUT.measure(RUN, task, without, without.parameters(), {})
    with pytest.raises(ConfigError, match="label_shortcut needs the weights of the trained classifiers"):
        SHORTCUT.measure(RUN, task, METHOD, PARAMETERS)


def test_the_page():
    """Two seeds: F gets 8 and 6 of ten right; nothing is generated for validation nodes."""
    columns = [*label_shortcut._PROTOTYPE.values(), *label_shortcut._CLASSIFIER.values()]
    rows = [
        {**of_run(Run("quick", "cora", 3, "feddep", seed)), "reader": reader, "input": source, "nodes": part}
        | {"correct": 0 if source == "zero" else 8 - 2 * seed, "count": 0 if (reader, source, part) == columns[6] else 10}
        for seed in (0, 1)
        for reader, source, part in columns
    ]
    page = label_shortcut.page({"label_shortcut": frame(rows)})
    text, summary = page["tables/label_shortcut.md"], page["tables/label_shortcut.csv"]
    assert len(summary) == len(columns)
    assert summary["seeds"].eq(2).all()
    assert summary["accuracy_mean"].isna().sum() == 1
    assert len(re.findall(r"\| 3 +\| FedDEP +\|", text)) == 2
    assert text.count("0.7000 ± 0.1414") == len(columns) - 3
    assert text.count("0.0000 ± 0.0000") == 2
