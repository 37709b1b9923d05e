"""From runs to pages: tables of a run as files, all of them as a page, by the rules of the workflow."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from small import DGEN, NEIGHGEN, case_of, measured, of_run, page, small_task

from feddep.utils.errors import ConfigError
from studies.label_shortcut.page import _CLASSIFIER, _PROTOTYPE
from studies.measuring import tables_of

REPOSITORY = Path(__file__).resolve().parents[2]
METHODS: dict[str, dict[str, Any]] = {
    "quality": {"feddep": {}},
    "label_shortcut": {"feddep": {"prototypes": 4}},
    "neighbourhoods": {"fedsage_plus": {"hidden_share": [0.1, 0.15]}},
    "label_distributions": {"global": {}, "fedavg": {}},
    "degree_histograms": {"vertical_mlp": {}},
    "vertical_attacks": {"vertical_gin": {}, "vesper_gin": {"theta": [0.0, 0.5]}},
    "overhead": {"fedsage_plus": {}, "feddep_wo_proto": {}, "feddep": {}},
    "privacy_audit": {"local": {}, "fedavg": {}},
    "client_privacy": {"fedgnn": {}},
}
CONFIG: dict[str, Any] = {
    "output": "out",
    "records": {"directory": "records", "use": False},
    "device": "cpu",
    "datasets": {"mini": {"synthetic": {"nodes": 60, "communities": 6}}},
    "clients": [2],
    "seeds": [0],
    "settings": {"quick": {"rounds": 1, "batch_size": 16, "hidden_channels": 8}},
    "methods": {"feddep": DGEN, "feddep_wo_proto": DGEN, "fedsage_plus": NEIGHGEN},
    "tables": [{"setting": "quick", "datasets": ["mini"], "methods": ["global"]}],
    "studies": [{"name": name, "kind": name, "runs": [{"methods": methods}]} for name, methods in METHODS.items()],
}
DATA = {"prepare": 1, "split": 1}


def snakemake(folder: Path, *arguments: str) -> str:
    """What Snakemake prints, run in a folder with a configuration of small runs."""
    if not (folder / "studies").exists():
        (folder / "studies").symlink_to(REPOSITORY / "studies")
        (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(REPOSITORY / "workflow" / "Snakefile"), "--cores", "1"]
    done = subprocess.run(
        [*command, "--configfile", "config.yaml", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.dag
@pytest.mark.parametrize(
    ("study", "expected"),
    [
        ("quality", {**DATA, "partition": 1, "step": 2, "measure": 1}),
        ("label_shortcut", {**DATA, "partition": 1, "step": 3, "train": 1, "measure": 1}),
        ("neighbourhoods", {**DATA, "partition": 1, "step": 2, "measure": 2}),
        ("label_distributions", {**DATA, "partition": 1, "train": 2, "measure": 2}),
        ("degree_histograms", {**DATA, "measure": 1}),
        ("vertical_attacks", {**DATA, "measure": 3}),
        ("client_privacy", {**DATA, "partition": 1, "measure": 1}),
    ],
)
def test_a_study_needs_what_it_reads(study: str, expected: dict[str, int], tmp_path: Path):
    printed = snakemake(tmp_path, "--dry-run", "--", study)
    jobs = re.findall(r"^(\w+) +(\d+)$", printed.partition("Job stats:")[2], re.MULTILINE)
    found = {rule: int(count) for rule, count in jobs if rule != "total"}
    assert found == {**expected, study: 1}


@pytest.mark.dag
def test_pages_are_made_of_what_is_measured(tmp_path: Path):
    """The files of each page, without which Snakemake fails; and nothing of it is made unasked."""
    snakemake(tmp_path, "--", "quality", "neighbourhoods", "overhead", "degree_histograms")
    assert pd.read_csv(tmp_path / "out" / "quality" / "table.csv")["setting"].tolist() == ["quick"] * 2 * 5
    assert not {*METHODS, "measure"} & set(re.findall(r"^rule (\w+):", snakemake(tmp_path, "--dry-run"), re.MULTILINE))


NUMBERS = (
    *("generated", "filled", "count_error", "count_correlation", "explained", "explained_filled", "explained_empty", "correct"),
    *("budget", "theta", "low", "most", "promised_certified", "promised_rdp", "accuracy_inside", "accuracy_outside"),
    *("membership_auc", "entropy_auc", "edge_auc"),
)
KINDS = {
    "quality": [{"guess": name} for name in ("DGen", "zero", "mean prototype", "own prototype", "least loss")],
    "label_shortcut": [
        {"reader": reader, "input": source, "nodes": nodes}
        for reader, source, nodes in (*_PROTOTYPE.values(), *_CLASSIFIER.values())
    ],
    "vertical_attacks": [{}],
}


@pytest.mark.parametrize("name", KINDS)
def test_a_page_has_means_over_seeds(name: str):
    """Two seeds whose numbers differ by 0.2."""
    kinds, numbers = KINDS[name], [dict.fromkeys(NUMBERS, value) for value in (0.6, 0.8)]
    both = [{**of_run(seed=seed), "client": 0, "hidden": "anew", "count": 1, **numbers[seed]} for seed in (0, 1)]
    rows = [{**row, **kind} for row in both for kind in kinds]
    made = page(name, **{name: rows})
    assert len(made["table.csv"]) == len(kinds)
    assert made["table.csv"]["seeds"].eq(2).all()
    assert "0.7000 ± 0.1414" in made["page.md"]


def test_numbers_have_six_digits_and_a_method_without_generators_is_refused():
    rows = measured("quality", case_of("feddep", small_task(), **DGEN)).select_dtypes(float)
    assert rows.size > 0
    assert rows.map(lambda value: np.isnan(value) or value == float(f"{value:.6g}")).all(axis=None)
    with pytest.raises(ConfigError):
        tables_of("quality", case_of("fedavg", small_task()))
