"""docs/own-method.md from its first line to its last: a method of one's own is a row, and noticed when it changes."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from feddep.methods import plugins, registry
from feddep.utils.storage import read_result
from workspace import REPOSITORY, Workspace

pytestmark = [pytest.mark.dag, pytest.mark.timeout(600)]
PAGE = (REPOSITORY / "docs" / "own-method.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin is not known to other tests."""
    monkeypatch.setattr(registry, "ADDED", {})
    monkeypatch.setattr(plugins, "_LOADED", {})


def test_the_page_on_methods_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method, experiment, command, session, *_ = (text for _, text in BLOCKS)
    assert method == (REPOSITORY / "docs" / "examples" / "fedpub_like.py").read_text()
    workspace = Workspace.new(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("fedpub_like.py").write_text(method)
    Path("mine.yaml").write_text(experiment)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path)}
    subprocess.run(["bash", "-euc", command], env=environment, check=True)

    out = tmp_path / "results" / "mine"
    accuracy = pd.read_csv(out / "tables" / "accuracy.csv")
    assert set(accuracy.method) == {"fedavg", "fedpub_like"}

    names: dict[str, Any] = {}
    exec(session, names)
    metrics = read_result(out / "runs/quick/mini/m4/fedpub_like/seed0/metrics.json")
    assert metrics["result"]["local_after"] == names["result"].local_after

    workspace.write({**yaml.safe_load((tmp_path / "config/config.yaml").read_text()), **yaml.safe_load(experiment)})
    assert workspace.jobs("tables") == {}
    Path("fedpub_like.py").write_text(f"{method}# changed\n")
    assert workspace.jobs("tables") == {"classify": 2, "tables": 1}
    (tmp_path / "fedpub_like.py").unlink()
    assert "fedpub_like.py" in workspace.run("tables", fails=True)
