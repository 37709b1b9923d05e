"""docs/own-data.md from its first line to its last: files of one's own become tables, and are noticed when they change."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from feddep import api
from feddep.utils.files import read_result
from workspace import REPOSITORY, Workspace

pytestmark = [pytest.mark.dag, pytest.mark.timeout(600)]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", (REPOSITORY / "docs" / "own-data.md").read_text(), re.MULTILINE | re.DOTALL)


def run_block(kind: str, text: str, session: dict[str, Any]) -> None:
    """What a reader does with a block of the page, in the working folder; Python in one session."""
    if kind == "yaml":
        Path("mine.yaml").write_text(text)
    elif kind == "python":
        exec(text, session)
    else:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(Path.cwd())}
        subprocess.run(["bash", "-euc", text], env=environment, check=True)


def test_the_page_on_graphs_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    workspace = Workspace.new(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert [kind for kind, _ in BLOCKS] == ["python", "yaml", "sh", "python"]
    session: dict[str, Any] = {}
    for kind, text in BLOCKS:
        run_block(kind, text, session)
    out = tmp_path / "results" / "people"
    graph = api.load_graph("people")
    found = read_result(out / "graphs" / "people.json")["statistics"]
    assert (found["nodes"], found["features"], found["classes"]) == (150, 8, 3)
    assert (found["fingerprint"], found["source"]) == (graph.fingerprint, "own files")
    accuracy = pd.read_csv(out / "tables" / "accuracy.csv")
    assert set(accuracy.dataset) == {"people"}
    assert set(accuracy.method) == {"global", "fedavg"}
    specification = read_result(next(out.rglob("fedavg/seed0/metrics.json")))["result"]["specification"]
    assert "path" not in specification["dataset"]

    everything = {"prepare": 1, "split": 1, "partition": 1, "classify": 2, "tables": 1}
    mine = yaml.safe_load(Path("mine.yaml").read_text())
    Path("people").rename("moved here; touch pwned")
    mine["datasets"]["people"]["path"] = "moved here; touch pwned"
    workspace.write(mine)
    Path("moved here; touch pwned/edges.csv").touch()
    assert workspace.jobs("tables") == {}
    edges = Path("moved here; touch pwned/edges.csv")
    edges.write_text(edges.read_text().partition("\n")[0] + "\np0,p1\n")
    assert workspace.jobs("tables") == everything
    edges.unlink()
    printed = workspace.run("tables", fails=True)
    assert "\nfeddep: moved here; touch pwned: the folder has neither of edges.csv and edges.parquet" in f"\n{printed}"
    assert "Traceback" not in printed
    assert not Path("pwned").exists()
