"""VESPER's public graphs: what is planned, and a run of each model on synthetic copies that have a
thousandth of the nodes, and all features and classes.
"""

from pathlib import Path

import pytest
import yaml

from feddep.config.loading import load
from feddep.experiment import plan
from feddep.experiment.verification import Trainer
from workspace import REPOSITORY

FILES = [REPOSITORY / "config" / name for name in ("default.yaml", "vesper_public.yaml")]
COPIES = {
    "reddit": {"nodes": 233, "classes": 41, "communities": 41, "features": 602, "words": 14,
               "degree_within": 4, "degree_between": 45},
    "ogbn_products": {"nodes": 2449, "classes": 47, "communities": 47, "features": 100, "words": 2,
                      "degree_within": 10, "degree_between": 40},
}  # fmt: skip


def test_every_number_of_the_paper_is_planned() -> None:
    for name in ("vesper_reddit", "vesper_products"):
        runs = plan.study_runs(load(*FILES), name)
        assert len({run.key for run in runs}) == 10 * (1 + 2 * 2 + 6 * (1 + 2 + 2 + 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", COPIES)
def test_each_model_is_trained_on_a_copy(name: str, tmp_path: Path) -> None:
    text = FILES[1].read_text("utf-8").replace(name, f"{name}_copy")
    copy = {f"{name}_copy": {"synthetic": COPIES[name]}}
    (tmp_path / "copy.yaml").write_text(text, "utf-8")
    quick = {"vesper_paper": {"batch_size": 64, "rounds": 1}}
    changes = {"datasets": copy, "settings": quick, "device": "cpu"}
    (tmp_path / "graph.yaml").write_text(yaml.safe_dump(changes), "utf-8")
    config = load(FILES[0], tmp_path / "copy.yaml", tmp_path / "graph.yaml")
    chosen = {
        (run.method.name, run.method.options.get("decoder")): run
        for study in config["studies"]
        for run in plan.study_runs(config, study)
        if run.dataset.name in copy and run.method.options.get("epsilon", 8.0) == 8.0
    }
    assert len(chosen) == 11
    for run in chosen.values():
        assert len(Trainer(config, tmp_path).train(run).history.losses) == 1
