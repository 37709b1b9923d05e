"""The rules of what is measured on demand, as Snakemake plans them."""

from pathlib import Path
from typing import Any

import pytest
from test_study_rules import CONFIG, jobs, plan

pytestmark = pytest.mark.dag

BLOCKS: dict[str, Any] = {
    "label_shortcut": [{"methods": {"feddep": {"prototypes": 3}}}],
    "neighbourhoods": [{"methods": {"fedsage_plus": {"hidden_share": [0.1, 0.15]}}}],
    "label_distributions": [{"methods": {"global": {}, "fedavg": {}}}],
    "degree_histograms": [{"methods": {"vertical_mlp": {}}}],
    "vertical_attacks": [{"methods": {"vertical_gin": {}, "vesper_gin": {"theta": [0.0, 0.5]}}}],
}


def test_neighbourhoods_need_generators_and_no_classifier(tmp_path: Path) -> None:
    code, printed = plan(tmp_path, {**CONFIG, **BLOCKS}, "out/tables/neighbourhoods.md")
    assert code == 0, printed
    data = {"prepare": 1, "split": 1, "partition": 1}
    assert jobs(printed) == {**data, "step": 2, "measure": 2, "neighbourhoods": 1, "total": 8}


def test_label_distributions_need_classifiers(tmp_path: Path) -> None:
    code, printed = plan(tmp_path, {**CONFIG, **BLOCKS}, "out/tables/label_distributions.md")
    assert code == 0, printed
    data = {"prepare": 1, "split": 1, "partition": 1}
    assert jobs(printed) == {**data, "classify": 2, "measure": 2, "label_distributions": 1, "total": 8}


def test_label_shortcuts_need_prototypes_generators_and_classifiers(tmp_path: Path) -> None:
    code, printed = plan(tmp_path, {**CONFIG, **BLOCKS}, "out/tables/label_shortcut.md")
    assert code == 0, printed
    data = {"prepare": 1, "split": 1, "partition": 1}
    assert jobs(printed) == {**data, "step": 3, "classify": 1, "measure": 1, "label_shortcut": 1, "total": 9}


def test_degrees_need_neither_partition_nor_training(tmp_path: Path) -> None:
    code, printed = plan(tmp_path, {**CONFIG, **BLOCKS}, "out/tables/degree_histograms.md")
    assert code == 0, printed
    assert jobs(printed) == {"prepare": 1, "split": 1, "measure": 1, "degree_histograms": 1, "total": 4}


def test_attacks_train_what_they_attack(tmp_path: Path) -> None:
    code, printed = plan(tmp_path, {**CONFIG, **BLOCKS}, "out/tables/vertical_attacks.md")
    assert code == 0, printed
    assert jobs(printed) == {"prepare": 1, "split": 1, "measure": 3, "vertical_attacks": 1, "total": 6}


def test_nothing_of_it_is_made_unasked(tmp_path: Path) -> None:
    code, printed = plan(tmp_path, {**CONFIG, **BLOCKS}, "all")
    assert code == 0, printed
    assert not {*BLOCKS, "measure", "step"} & set(jobs(printed))
