"""The rules of the studies, as Snakemake plans them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from feddep.config.loading import MEASURED

pytestmark = pytest.mark.dag

REPOSITORY = Path(__file__).resolve().parents[2]
BLOCK: dict[str, Any] = {"methods": {"fedavg": {}}}
CONFIG: dict[str, Any] = {
    "output": "out",
    "records": {"directory": "records", "use": True},
    "device": "cpu",
    "datasets": {"mini": {"synthetic": {"nodes": 60}}},
    "clients": [2],
    "seeds": [0],
    "settings": {"quick": {"rounds": 2}},
    "tables": [{"setting": "quick", "datasets": ["mini"], "methods": ["global"]}],
    **{key: [] for key in MEASURED},
    "studies": [
        {"name": "widths", "kind": "sweep", "runs": [{**BLOCK, "settings": {"quick": {"hidden_channels": [4, 8]}}}]},
        {"name": "history", "kind": "curves", "runs": [BLOCK]},
    ],
}


def plan(directory: Path, config: dict[str, Any], *targets: str) -> tuple[int, str]:
    (directory / "config.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(REPOSITORY / "workflow" / "Snakefile"), "--dry-run"]
    done = subprocess.run(
        [*command, "--configfile", "config.yaml", "--", *targets], cwd=directory, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def jobs(printed: str) -> dict[str, int]:
    return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", printed.partition("Job stats:")[2], re.MULTILINE)}


def test_everything_holds_every_study(tmp_path: Path) -> None:
    code, printed = plan(tmp_path, CONFIG)
    assert code == 0, printed
    expected = {"prepare": 1, "split": 1, "partition": 1, "study": 2, "study_table": 1, "all": 1}
    # FedAvg in three widths, of which one is the setting's own, for the studies; and Global for the main table.
    assert jobs(printed).items() >= {**expected, "tables": 1, "classify": 4}.items()


def test_an_unknown_kind_is_one_sentence(tmp_path: Path) -> None:
    code, printed = plan(tmp_path, {**CONFIG, "studies": [{"name": "mine", "kind": "swep", "runs": [{}]}]}, "studies")
    assert code != 0
    assert 'feddep: studies.0.kind is "swep"; allowed: ' in printed
    assert "Traceback" not in printed
