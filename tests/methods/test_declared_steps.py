"""Each declared step runs with nothing but what it declares."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import pytest
import torch

from feddep import api
from feddep.experiment.tasks import build_task
from feddep.methods import registry
from feddep.methods.method import Method, Step, StepResult, by_client, run_steps
from feddep.training.config import TrainingConfig
from feddep.training.task import Task
from feddep.utils.parameters import Parameters, Positive
from method_tasks import known

CHOICES: dict[str, list[Any]] = {
    "encoder": ["local", "federated"],
    "clustering": ["kmeans", "dec"],
    "fused": ["paper", "authors"],
    "initial": ["he", "uniform"],
    "hidden_from": ["validation", "all"],
    "slots": ["generated", "all"],
    "scale": ["paper", "authors"],
    "generator_optimizer": ["sgd", "adam"],
    "depth": [0, 2],
}
"""Options that choose between pieces of code."""
SMALL = {
    "embedding": 4,
    "prototypes": 2,
    "pretraining_epochs": 1,
    "generator_epochs": 1,
    "generator_width": 4,
}
SMALL |= {"generator_local_epochs": 1, "generator_federated_epochs": 1}


@pytest.fixture(scope="module")
def task() -> Task:
    graph = api.synthetic_graph(nodes=80, classes=2, communities=4, features=16, words=3)
    setting = TrainingConfig(rounds=1, hidden_channels=4, fanout=2)
    specification = {
        "dataset": {"features": "raw", "labelled": None},
        "setting": setting.model_dump(),
        "seed": 0,
    }
    return build_task(
        specification, graph, api.split(graph), api.partition(graph, 2, delta=5), "toy"
    )


def declared() -> list[tuple[str, dict[str, Any]]]:
    """Every method with steps, with the default of each option and with each other choice."""
    found = []
    for name, method in registry.methods().items():
        fields = method.parameters.model_fields
        if method.steps(method.parameters()):
            found.append((name, {}))
            for key, values in CHOICES.items():
                if key in fields and not (name == "feddep_wo_dgen" and key == "depth"):
                    found += [
                        (name, {key: value}) for value in values if value != fields[key].default
                    ]
    return found


@pytest.mark.parametrize(("name", "options"), declared())
def test_a_step_reads_nothing_but_what_it_declares(name: str, options: dict[str, Any], task: Task):
    method = registry.find(name)
    small = {**known(name, SMALL), **options}
    if name == "locsage_plus":
        del small["generator_federated_epochs"]
    parameters = method.parameters(**small)
    steps = method.steps(parameters)
    results = run_steps(task, parameters, steps)
    assert list(results) == [step.stage for step in steps]
    for result in results.values():
        assert result.tensors
        assert all(torch.isfinite(tensor).all() for tensor in result.tensors.values())


class Wide(Parameters):
    width: Positive = 3


class Wider(Wide):
    depth: Positive = 2


def greedy(task: Task, parameters: Wider, results: Mapping[str, StepResult]) -> StepResult:
    shape = (
        task.setting.fanout,
        task.setting.rounds,
        parameters.width,
        parameters.depth,
        len(results["other"].tensors),
    )
    return StepResult(by_client(x=[torch.zeros(shape)] * 2))


def step(**options: Any) -> Step:
    declared = {
        "parameters": Wider,
        "setting": ("fanout", "rounds"),
        "needs": ("other",),
        **options,
    }
    return Step(name="toy.step", stage="toy", function=f"{__name__}:greedy", **declared)


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"setting": ("fanout",)}, AttributeError, "rounds"),
        ({"parameters": Wide}, AttributeError, "depth"),
        ({"needs": ()}, KeyError, "other"),
    ],
)
def test_what_is_not_declared_cannot_be_read(
    task: Task, options: dict[str, Any], error: type[Exception], named: str
):
    results = {"other": StepResult({})}
    with pytest.raises(error, match=named):
        step(**options).run(task, Wider(), results)
    assert [tensor.shape for tensor in step().run(task, Wider(), results).of_clients("x")] == [
        (2, 1, 3, 2, 0)
    ] * 2


def test_a_result_that_is_at_hand_is_not_computed_again(task: Task):
    given = {"toy": StepResult({})}
    assert run_steps(dataclasses.replace(task, step_results=given), Wider(), [step()]) == given


def test_a_step_is_the_same_for_two_settings_that_differ_elsewhere(task: Task):
    """What the key of a step leaves out cannot matter: here the fields that neither of its users
    declares.
    """
    method: Method = registry.find("feddep")
    parameters = method.parameters(**known("feddep", SMALL))
    shown = set(itertools.chain(*(each.setting for each in method.steps(parameters))))
    hidden = {
        "rounds": 9,
        "optimizer": "adam",
        "learning_rate": 0.3,
        "weight_decay": 0.2,
        "local_epochs": 4,
    }
    assert not shown & set(hidden)
    other = dataclasses.replace(task, setting=task.setting.replace(**hidden))
    first, second = (
        run_steps(each, parameters, method.steps(parameters)) for each in (task, other)
    )
    for stage, result in first.items():
        torch.testing.assert_close(second[stage].tensors, result.tensors, rtol=0, atol=0)
