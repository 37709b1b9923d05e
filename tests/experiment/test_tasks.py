"""The task of a run, from its specification."""

import numpy as np
import pytest
import torch

from feddep.config.loading import validate
from feddep.experiment.plan import one_run
from feddep.experiment.tasks import build_task, choose_device
from feddep.graph import scaling
from feddep.graph.partition import Partition
from feddep.graph.split import random_split
from feddep.training.config import TrainingConfig
from feddep.utils.errors import ConfigError
from graphs import MINIMAL_CONFIG, random_graph

DATASETS = {"tiny": {"synthetic": {}, "features": "row", "labelled": 0.25}}
CONFIG = validate({**MINIMAL_CONFIG, "datasets": DATASETS, "settings": {"quick": {"rounds": 7}}})


def test_a_task_is_what_the_specification_says():
    graph = random_graph(40, 80)
    specification = one_run(CONFIG, "fedavg", 2, 3).specification
    split, partition = random_split(40, specification["split"], 3), Partition(np.arange(40) % 2, 2)
    task = build_task(specification, graph, split, partition, "a name")
    assert (task.name, task.seed, task.device, task.step_results) == ("a name", 3, "cpu", {})
    assert task.setting == TrainingConfig(rounds=7)
    assert (task.graph.features != scaling.scale(graph.features, "row")).nnz == 0
    assert task.graph.fingerprint != graph.fingerprint
    assert len(task.split.train) == 10
    np.testing.assert_array_equal(task.split.train, split.labelled(0.25, 3).train)
    assert task.partition is partition
    results = {"pretrain": object()}
    given = build_task(specification, graph, split, None, "a name", step_results=results)  # type: ignore[arg-type]
    assert given.partition is None
    assert given.step_results == results
    other = build_task({**specification, "seed": 4}, graph, split, partition, "a name")
    assert list(other.split.train) != list(task.split.train)


def test_the_device(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == "cpu"
    with pytest.raises(ConfigError):
        choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert (choose_device("auto"), choose_device("cpu"), choose_device("cuda")) == (
        "cuda",
        "cpu",
        "cuda",
    )
    with pytest.raises(ConfigError):
        choose_device("gpu")
