"""From the specification of a run to the task that its method is given."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from feddep.graph import scaling
from feddep.graph.graph import Graph
from feddep.graph.noise import NOISE_OPTIONS, with_noise, without_test_nodes
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.methods.method import StepResult
from feddep.training.config import TrainingConfig, check_metric
from feddep.training.task import Task
from feddep.utils.errors import ConfigError, PartitionError


def build_task(
    specification: Mapping[str, Any],
    graph: Graph,
    split: Split,
    partition: Partition | None,
    name: str,
    device: str = "cpu",
    step_results: Mapping[str, StepResult] | None = None,
) -> Task:
    """Scale the features, remove the labels that may not be trained on, add noise, hide test nodes,
    and put the task together.

    Args:
        specification: of the run (:func:`feddep.experiment.keys.specification`); ``dataset``,
            ``setting``, ``seed`` and, if it is there, ``split`` are read.
        graph: the prepared graph, features as they are in the files.
        split: training, validation and test nodes of the graph.
        partition: which client holds which node; None for a method that is trained on the whole
            graph.
        name: what the run is called on its progress bar.
        device: ``cpu`` or ``cuda``.
        step_results: results of the method's steps that are at hand, by stage.

    Raises:
        ConfigError: if the share of labelled nodes is more than there are training nodes, the
            metric is for two classes, or all clients are new.
        DataError: if the features cannot be scaled like that.
        PartitionError: if there is noise, and no clients, or some that overlap; or new clients,
            and no partition.
    """
    options = specification["dataset"]
    seed = specification["seed"]
    setting = TrainingConfig(**specification["setting"])
    check_metric(setting.metric, graph.num_classes, "the graph")
    graph = dataclasses.replace(graph, features=scaling.scale(graph.features, options["features"]))
    split = split.labelled(options["labelled"], seed)
    if "noise" in options:
        if partition is None or not partition.is_disjoint:
            raise PartitionError("noise is at clients, and needs some that share no node")
        noise = {key: options[key] for key in NOISE_OPTIONS if key in options}
        graph, split = with_noise(graph, split, partition, seed, **noise)
    if "unseen" in specification.get("split", ()):
        graph = without_test_nodes(graph, split)
    task = Task(
        name=name,
        graph=graph,
        split=split,
        partition=partition,
        setting=setting,
        seed=seed,
        device=device,
        step_results=step_results or {},
    )
    return task.with_new_clients() if setting.new_clients else task


def choose_device(wish: str) -> str:
    """``cpu`` or ``cuda``: what the configuration asks for, or for ``auto`` the GPU where there is
    one.

    Raises:
        ConfigError: if a GPU is asked for and there is none, or something else than these three.
    """
    if wish not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"device is {wish}; allowed: auto, cpu, cuda")
    present = torch.cuda.is_available()
    if wish == "cuda" and not present:
        raise ConfigError(
            "device is cuda, but PyTorch finds no GPU on this machine; set it to auto or cpu"
        )
    return "cuda" if present and wish != "cpu" else "cpu"


def device_name(wish: str) -> str:
    """What computes, as a provenance names it: ``cpu``, or the name of the GPU.  Errors are those
    of :func:`choose_device`.
    """
    return torch.cuda.get_device_name() if choose_device(wish) == "cuda" else "cpu"
