"""From runs to pages: tables of a run as files, all of them as a page, by the rules of the workflow."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from small import case_of, of_run, page, small_task

from feddep.experiment.plan import Run
from feddep.utils.errors import ConfigError, DataError
from studies.label_shortcut.page import _CLASSIFIER, _PROTOTYPE
from studies.measuring import page_of, tables_of

REPOSITORY = Path(__file__).resolve().parents[2]
DGEN = {"prototypes": 3, "embedding": 4, "pretraining_epochs": 1, "generator_epochs": 1, "hidden_from": "all"}
NEIGHGEN = {"embedding": 4, "generator_width": 8, "generator_local_epochs": 1, "generator_federated_epochs": 1}
RUNS: dict[str, list[dict[str, Any]]] = {
    "quality": [{"methods": {"feddep": {}}}],
    "label_shortcut": [{"methods": {"feddep": {"prototypes": 4}}}],
    "neighbourhoods": [{"methods": {"fedsage_plus": {"hidden_share": [0.1, 0.15]}}}],
    "label_distributions": [{"methods": {"global": {}, "fedavg": {}}}],
    "degree_histograms": [{"methods": {"vertical_mlp": {}}}],
    "vertical_attacks": [{"methods": {"vertical_gin": {}, "vesper_gin": {"theta": [0.0, 0.5]}}}],
    "overhead": [{"methods": {"fedsage_plus": {}, "feddep_wo_proto": {}, "feddep": {}}}],
    "privacy_audit": [{"methods": {"local": {}, "fedavg": {}}}],
    "client_privacy": [{"methods": {"fedgnn": {}}}],
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
    "studies": [{"name": name, "kind": name, "runs": runs} for name, runs in RUNS.items()],
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
    snakemake(tmp_path, "--", "quality", "neighbourhoods", "overhead", "degree_histograms")
    out = tmp_path / "out"
    files = {name: {file.name for file in (out / name).iterdir()} for name in ("quality", "neighbourhoods", "overhead")}
    both, drawn = {"table.csv", "page.md"}, {"figure.svg", "figure.png"}
    assert files == {"quality": both, "neighbourhoods": {*both, *drawn, "missing_neighbours.csv"}, "overhead": both}
    assert (out / "degree_histograms" / "figure.png").read_bytes()[:4] == b"\x89PNG"
    rows = pd.read_csv(out / "quality" / "table.csv")
    assert rows["setting"].eq("quick").all()
    assert len(rows) == 2 * 5


@pytest.mark.dag
def test_nothing_of_it_is_made_unasked(tmp_path: Path):
    assert not {*RUNS, "measure"} & set(re.findall(r"^rule (\w+):", snakemake(tmp_path, "--dry-run"), re.MULTILINE))


@pytest.mark.parametrize("name", ["quality", "label_shortcut", "vertical_attacks"])
def test_a_page_has_means_over_seeds(name: str):
    """Two seeds whose numbers differ by 0.2 in what is averaged."""
    columns = {
        "quality": {"client": 0, "hidden": "anew", "generated": 0.5, "count_error": 1.0, "filled": 0.5, "count_correlation": 0.5}
        | {"explained_filled": 0.7, "explained_empty": None},
        "label_shortcut": {"count": 10},
        "vertical_attacks": {"budget": None, "theta": None, "entropy_auc": 0.6, "edge_auc": 0.7, "low": 3.5, "most": 4.5}
        | {"promised_certified": None, "promised_rdp": None, "accuracy_inside": 0.9, "accuracy_outside": 0.8},
    }[name]
    kinds = {
        "quality": [{"guess": each} for each in ("DGen", "zero", "mean prototype", "own prototype", "least loss")],
        "label_shortcut": [
            dict(zip(("reader", "input", "nodes"), each, strict=True)) for each in (*_PROTOTYPE.values(), *_CLASSIFIER.values())
        ],
        "vertical_attacks": [{}],
    }[name]
    quantity = {"quality": "explained", "label_shortcut": "correct", "vertical_attacks": "membership_auc"}[name]
    rows = [
        {**of_run(Run("quick", "cora", 3, "feddep", seed)), **columns, **kind}
        | {quantity: 6 + 2 * seed if name == "label_shortcut" else 0.6 + 0.2 * seed}
        for seed in (0, 1)
        for kind in kinds
    ]
    made = page(name, **{name: rows})
    assert len(made["table.csv"]) == len(kinds)
    assert made["table.csv"]["seeds"].eq(2).all()
    assert "0.7000 ± 0.1414" in made["page.md"]


def test_numbers_have_six_digits():
    (rows,) = tables_of("quality", case_of("feddep", small_task(), **DGEN)).values()
    numbers = [value for row in rows for value in row.values() if isinstance(value, float)]
    assert numbers
    assert all(value != value or value == float(f"{value:.6g}") for value in numbers)


def test_a_method_without_generators_is_refused():
    with pytest.raises(ConfigError):
        tables_of("quality", case_of("fedavg", small_task()))


def test_a_page_needs_runs():
    with pytest.raises(DataError):
        page_of("quality", [])
