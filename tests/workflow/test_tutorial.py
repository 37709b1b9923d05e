"""docs/tutorial.md from its first block to its last: files are written as it says, and every command is run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from feddep.utils.files import read_result
from workspace import REPOSITORY, Workspace

pytestmark = [pytest.mark.dag, pytest.mark.slow, pytest.mark.timeout(900)]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", (REPOSITORY / "docs" / "tutorial.md").read_text(), re.MULTILINE | re.DOTALL)


def follow(kind: str, text: str) -> str:
    """What a reader does with a block: one that begins with the name of a file is written there, any other is run."""
    named = re.match(r"# (\S+\.(?:py|yaml))\n", text)
    if named:
        Path(named[1]).parent.mkdir(parents=True, exist_ok=True)
        Path(named[1]).write_text(text)
        return ""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(Path.cwd())}
    command = {"sh": ["bash", "-euc"], "python": [sys.executable, "-c"]}[kind]
    done = subprocess.run([*command, text], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Workspace.new(tmp_path)
    monkeypatch.chdir(tmp_path)
    said = [follow(kind, text) for kind, text in BLOCKS]
    planned, made, _, _, _, again, published, in_python = said[1:]
    assert "1 run: 1 to train" in planned
    assert "FedAvg" in made
    assert "Sparsified" not in made
    assert re.search(r"^4 runs: 3 to train \(.*\), 0 from records, 1 finished before$", again, re.MULTILINE)
    assert "Sparsified" in again.partition("# Node classification accuracy")[2]
    assert re.search(r"^\d+ records changed", published, re.MULTILINE)

    out = tmp_path / "results" / "mine"
    assert set(pd.read_csv(out / "tables" / "accuracy.csv").method) == {"fedavg", "sparsified"}
    table = pd.read_csv(out / "studies" / "kept" / "table.csv")
    assert {"fedavg", "sparsified"} <= set(table.method)
    run = read_result(out / "runs/quick/mine/m3/sparsified,kept=0.8/seed0/metrics.json")["result"]
    assert str(run["accuracy"]["best"]) in in_python  # the same numbers
    assert (out / "records/quick/mine/m3/sparsified,kept=0.2/seed0.json").is_file()
