"""Which steps a run has, which runs share one, and what the keys of steps depend on."""

import dataclasses
from typing import Any

import pytest

from feddep.config import variants
from feddep.config.loading import Config, merged, validate
from feddep.experiment.plan import one_run
from feddep.experiment.steps import StepJob, step_jobs
from feddep.methods import registry
from feddep.training.config import TrainingConfig
from graphs import MINIMAL_CONFIG
from other_values import another, others

RAW: dict[str, Any] = {**MINIMAL_CONFIG, "datasets": {"cora": {}, "tiny": {"synthetic": {}}}}
CONFIG = validate(RAW)
WITH_STEPS = [
    name for name, method in registry.methods().items() if method.steps(method.parameters())
]


def jobs(method: str, config: Config = CONFIG, **changes: Any) -> dict[str, StepJob]:
    """The steps of a run, by stage."""
    run = one_run(config, method, **{"clients": 3, "dataset": "cora", **changes})
    return {job.step.stage: job for job in step_jobs(run)}


def moved(before: dict[str, StepJob], after: dict[str, StepJob]) -> set[str]:
    """Stages whose key is another; a file has another name exactly if its key is another."""
    assert list(before) == list(after)
    found = {stage for stage in before if before[stage].key != after[stage].key}
    assert found == {stage for stage in before if before[stage].file != after[stage].file}
    return found


def reached(before: dict[str, StepJob], reading: Any) -> set[str]:
    """Stages that read something, and those that need them."""
    found: set[str] = set()
    for stage, job in before.items():
        if reading(job.step) or found & set(job.step.needs):
            found.add(stage)
    return found


def test_stages_are_in_their_order():
    assert {"feddep", "fedsage_plus", "feddep_oracle"} <= set(WITH_STEPS)
    assert not {"fedavg", "local", "fedprox"} & set(WITH_STEPS)
    found = jobs("feddep", dataset="cora,labelled=0.1")
    assert list(found) == ["pretrain", "prototypes", "generator"]
    for stage, job in found.items():
        assert job.file.parent.name == stage
        assert job.file.name == f"cora-{job.key}.safetensors"


@pytest.mark.parametrize("method", WITH_STEPS)
def test_a_step_depends_on_what_it_declares_and_on_nothing_else(method: str):
    """Fields of the setting and parameters of the method, its own or those of a step that it
    needs.
    """
    before = jobs(method)
    for field in TrainingConfig.model_fields:
        other = validate(
            merged(RAW, {"settings": {"quick": {field: another(TrainingConfig, field)}}})
        )
        assert moved(before, jobs(method, other)) == reached(
            before, lambda step, field=field: field in step.setting
        )
    for field, value in others(registry.find(method).parameters).items():
        after = jobs(variants.format_name(method, {field: value}))
        if list(after) == list(before):  # some parameters say which steps there are
            declared = reached(
                before, lambda step, field=field: field in step.parameters.model_fields
            )
            assert moved(before, after) == declared


@pytest.mark.parametrize("method", WITH_STEPS)
def test_a_step_depends_on_the_data_and_not_on_the_machine(method: str):
    before = jobs(method)
    other_data = [{"dataset": name} for name in ("tiny", "cora,labelled=0.1", "cora,features=row")]
    for changes in ({"seed": 1}, {"clients": 5}, *other_data):
        assert not {job.file for job in before.values()} & {
            job.file for job in jobs(method, **changes).values()
        }
    for given in ({"split": {"train": 0.7, "val": 0.1}}, {"partition": {"delta": 10}}):
        assert moved(before, jobs(method, validate(merged(RAW, given)))) == set(before)
    elsewhere = validate({**RAW, "device": "cpu", "output": "elsewhere", "threads": 2})
    assert moved(before, jobs(method, elsewhere)) == set()


def test_ablations_share_what_they_have_in_common():
    """A sweep over C, or over what only the classifier reads, trains no local GNN again."""
    assert moved(jobs("feddep"), jobs("feddep,prototypes=3")) == {"prototypes", "generator"}
    assert moved(jobs("feddep"), jobs("feddep,generator_epochs=9")) == {"generator"}
    assert jobs("feddep")["pretrain"].file == jobs("feddep_wo_proto")["pretrain"].file
    assert jobs("feddep")["generator"].file != jobs("feddep_wo_proto")["generator"].file
    assert moved(jobs("feddep"), jobs("feddep_wo_nfdp")) == set()


@pytest.mark.parametrize("raised", ["pretrain", "prototypes", "generator"])
def test_raising_a_revision_computes_again_from_there_on(
    raised: str, monkeypatch: pytest.MonkeyPatch
):
    before, others_before = jobs("feddep"), jobs("fedsage_plus")
    feddep = registry.find("feddep")

    def steps(given: Any) -> list[Any]:
        return [
            dataclasses.replace(step, revision=step.revision + (step.stage == raised))
            for step in feddep.steps(given)
        ]

    monkeypatch.setitem(registry.ADDED, "feddep", dataclasses.replace(feddep, steps=steps))
    anew = validate(RAW)
    assert moved(before, jobs("feddep", anew)) == reached(before, lambda step: step.stage == raised)
    assert moved(others_before, jobs("fedsage_plus", anew)) == set()


def test_what_a_step_declares_exists_and_names_tell_steps_apart():
    every = set()
    for method in registry.methods().values():
        before: set[str] = set()
        for step in method.steps(method.parameters()):
            assert set(step.parameters.model_fields) <= set(method.parameters.model_fields)
            assert set(step.setting) <= set(TrainingConfig.model_fields)
            assert set(step.needs) <= before
            before.add(step.stage)
            every.add(step)
    assert len({step.name for step in every}) == len(every)
