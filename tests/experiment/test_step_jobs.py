"""Which steps a run has, which runs share one, and what the keys of steps depend on."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from feddep.config.loading import Config, merged, validate
from feddep.experiment import keys
from feddep.experiment.plan import Run
from feddep.experiment.step_jobs import StepJob, step_jobs
from feddep.methods import feddep, registry
from feddep.methods.method import Step
from feddep.training.config import TrainingConfig

RAW: dict[str, Any] = {
    "datasets": {"cora": {}, "tiny": {"synthetic": {}}},
    "clients": [3],
    "seeds": [0],
    "settings": {"quick": {}},
    "methods": {"fedavg": {}, "feddep": {}},
}
OTHER: dict[str, Any] = {
    **{"optimizer": "adam", "learning_rate": 0.3, "weight_decay": 0.1, "batch_size": 3, "fanout": 2, "rounds": 3},
    **{"local_epochs": 3, "layers": 3, "hidden_channels": 3, "dropout": 0.3, "client_weights": "equal", "encoder": "gcn"},
}
"""Another value of each field of a setting."""


@pytest.fixture
def config() -> Config:
    return validate(RAW)


def jobs(config: Config, method: str, **changes: Any) -> dict[str, StepJob]:
    """The steps of a run, by stage."""
    run = Run(**{"setting": "quick", "dataset": "cora", "clients": 3, "method": method, "seed": 0, **changes})
    return {job.step.stage: job for job in step_jobs(config, run)}


def files(config: Config, method: str, **changes: Any) -> dict[str, Path]:
    return {stage: job.file for stage, job in jobs(config, method, **changes).items()}


def changed(before: dict[str, StepJob], after: dict[str, StepJob]) -> set[str]:
    """Stages whose key changed; a file has another name exactly if its key is another."""
    assert list(before) == list(after)
    moved = {stage for stage in before if before[stage].key != after[stage].key}
    assert moved == {stage for stage in before if before[stage].file != after[stage].file}
    return moved


def test_stages_in_their_order(config: Config):
    assert list(files(config, "feddep")) == ["pretrain", "prototypes", "generator"]
    assert list(files(config, "feddep_wo_proto")) == ["pretrain", "generator"]
    assert list(files(config, "feddep_wo_dgen,reading=unmended")) == []
    assert files(config, "fedavg") == {}


def test_a_file_is_named_by_its_key(config: Config):
    job = jobs(config, "feddep", dataset="cora,labelled=0.1", seed=4)["prototypes"]
    assert job.file == Path("steps", "prototypes", "cora", "m3", job.key[:12], "seed4.safetensors")


def test_a_step_reads_the_files_of_those_that_it_needs(config: Config):
    found = jobs(config, "feddep")
    assert found["pretrain"].needs == {}
    assert found["prototypes"].needs == {"pretrain": found["pretrain"].file}
    assert found["generator"].needs == {"prototypes": found["prototypes"].file}


def test_another_number_of_prototypes_computes_again_from_there_on(config: Config):
    assert changed(jobs(config, "feddep"), jobs(config, "feddep,prototypes=3")) == {"prototypes", "generator"}


def test_what_the_generator_reads_leaves_the_steps_before(config: Config):
    assert changed(jobs(config, "feddep"), jobs(config, "feddep,generator_epochs=9")) == {"generator"}
    before, after = (Run("quick", "cora", 3, name, 0) for name in ("feddep", "feddep,generator_epochs=9"))
    assert keys.run_key(config, before) != keys.run_key(config, after)


@pytest.mark.parametrize("method", ["feddep", "feddep_wo_proto", "feddep_wo_dgen", "fedsage_plus", "feddep_oracle"])
@pytest.mark.parametrize("field", TrainingConfig.model_fields)
def test_a_step_depends_on_the_fields_of_the_setting_that_it_declares(method: str, field: str, config: Config):
    other = validate(merged(RAW, {"settings": {"quick": {field: OTHER[field]}}}))
    before, after = jobs(config, method), jobs(other, method)
    reached: set[str] = set()
    for stage, job in before.items():
        if field in job.step.setting or reached & set(job.step.needs):
            reached.add(stage)
    assert changed(before, after) == reached
    run = Run("quick", "cora", 3, method, 0)
    assert keys.run_key(config, run) != keys.run_key(other, run)


def test_the_number_of_rounds_makes_no_step_anew_that_does_not_read_it(config: Config):
    for name, method in registry.methods().items():
        if method.partitioned:
            reading = {job.step.stage for job in jobs(config, name).values() if "rounds" in job.step.setting}
            assert changed(jobs(config, name), jobs(config, name, setting="quick,rounds=9")) == reading
            assert not reading or name.startswith("fednld")


def test_what_only_testing_reads_makes_nothing_anew(config: Config):
    assert files(config, "feddep") == files(config, "feddep,inference=generated")


def test_ablations_share_what_they_have_in_common(config: Config):
    assert files(config, "feddep")["pretrain"] == files(config, "feddep_wo_proto")["pretrain"]
    assert files(config, "feddep")["generator"] != files(config, "feddep_wo_proto")["generator"]
    assert files(config, "feddep")["pretrain"] != files(config, "feddep_wo_dgen")["pretrain"]
    assert files(config, "feddep") == files(config, "feddep_wo_nfdp")
    assert files(config, "fedsage_plus")["generator"] != files(config, "fedsage_plus_shared")["generator"]


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"dataset": "tiny"}, {"dataset": "cora,labelled=0.1"}, {"dataset": "cora,features=row"}, {"clients": 5}],
)
def test_nothing_is_shared_between_different_data(config: Config, change: dict[str, Any]):
    assert not set(files(config, "feddep").values()) & set(files(config, "feddep", **change).values())


@pytest.mark.parametrize("changes", [{"split": {"train": 0.7, "val": 0.1}}, {"partition": {"delta": 10}}])
def test_every_step_depends_on_split_and_partition(config: Config, changes: dict[str, Any]):
    assert changed(jobs(config, "feddep"), jobs(validate({**RAW, **changes}), "feddep")) == {
        "pretrain",
        "prototypes",
        "generator",
    }


@pytest.mark.parametrize("changes", [{"device": "cpu"}, {"output": "elsewhere"}, {"threads": 2}])
def test_no_step_depends_on_the_machine(config: Config, changes: dict[str, Any]):
    assert changed(jobs(config, "feddep"), jobs(validate({**RAW, **changes}), "feddep")) == set()


@pytest.mark.parametrize(
    ("step", "later"),
    [
        ("PRETRAINING", {"pretrain", "prototypes", "generator"}),
        ("PROTOTYPES", {"prototypes", "generator"}),
        ("GENERATOR", {"generator"}),
    ],
)
def test_raising_a_revision_computes_again_from_there_on(
    step: str, later: set[str], config: Config, monkeypatch: pytest.MonkeyPatch
):
    before, others = jobs(config, "feddep"), jobs(config, "fedsage_plus")
    declared: Step = getattr(feddep, step)
    monkeypatch.setattr(feddep, step, dataclasses.replace(declared, revision=declared.revision + 1))
    assert changed(before, jobs(config, "feddep")) == later
    assert changed(others, jobs(config, "fedsage_plus")) == set()


def test_what_a_step_declares_exists():
    """Parameters are a base class of the method's, fields are those of a setting, and needs are of steps before."""
    for method in registry.methods().values():
        before: set[str] = set()
        for step in method.steps(method.parameters()):
            assert set(step.parameters.model_fields) <= set(method.parameters.model_fields)
            assert set(step.setting) <= set(TrainingConfig.model_fields)
            assert set(step.needs) <= before
            before.add(step.stage)


def test_no_two_steps_have_one_name():
    steps = {step for each in registry.methods().values() for step in each.steps(each.parameters())}
    assert len({step.name for step in steps}) == len(steps)
