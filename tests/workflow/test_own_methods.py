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

from feddep import api
from feddep.methods import plugins, registry
from feddep.utils.files import read_result
from workspace import REPOSITORY, Workspace

pytestmark = [pytest.mark.dag, pytest.mark.timeout(600)]
PAGE = (REPOSITORY / "docs" / "own-method.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin is not known to other tests."""
    known = dict(registry.methods())
    monkeypatch.setattr(registry, "methods", lambda: known)
    monkeypatch.setattr(plugins, "_PLUGINS", {})


def test_the_page_on_methods_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [kind for kind, _ in BLOCKS] == ["python", "yaml", "sh", "python", "toml"]
    method, experiment, command, session, _ = (text for _, text in BLOCKS)
    workspace = Workspace.new(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("half.py").write_text(method)
    Path("mine.yaml").write_text(experiment)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path)}
    subprocess.run(["bash", "-euc", command], env=environment, check=True)

    out = tmp_path / "results" / "half"
    accuracy = pd.read_csv(out / "tables" / "accuracy.csv")
    assert set(accuracy.method) == {"fedavg", "half"}
    assert "FedAvg of half the clients" in (out / "tables" / "accuracy.md").read_text()
    metrics = read_result(out / "runs/quick/mini/m4/half/seed0/metrics.json")
    senders = [row for row in metrics["result"]["communication"] if (row["direction"], row["kind"]) == ("up", "model")]
    assert sum(row["messages"] for row in senders) == 3 * 2  # two of four clients in each of three rounds

    names: dict[str, Any] = {}
    exec(session, names)
    arguments = names["graph"], names["split"], names["partition"]
    setting = {"rounds": 3, "hidden_channels": 8}
    everybody = api.run("half", *arguments, setting=setting, parameters={"share": 1.0})
    assert everybody.history.equals(api.run("fedavg", *arguments, setting=setting).history)
    assert not names["few"].history.equals(everybody.history)

    workspace.write({**yaml.safe_load((tmp_path / "config/config.yaml").read_text()), **yaml.safe_load(experiment)})
    assert workspace.jobs("tables") == {}
    Path("half.py").write_text(f"{method}# changed\n")
    assert workspace.jobs("tables") == {"classify": 2, "tables": 1}
    (tmp_path / "half.py").unlink()
    assert "plugins.0, half.py, cannot be read: No such file or directory" in workspace.run("tables", fails=True)
