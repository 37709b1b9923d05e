"""docs/guide/judge.md, from its first block to its last."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from feddep.config.loading import merged
from feddep.graph.graph import Graph
from workspace import REPOSITORY


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.timeout(900)  # twenty partitions by Louvain
def test_from_an_empty_file_to_a_row(cora: Graph, tmp_path: Path):
    for name in ("config", "studies", "results/runs"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(REPOSITORY / name)
    page = (REPOSITORY / "docs" / "guide" / "judge.md").read_text(encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(REPOSITORY)}
    for kind, text in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if kind == "python":
            (tmp_path / "spread.py").write_text(text)
        elif kind == "yaml":
            row = tmp_path / "judged" / "row.yaml"
            filled = merged(yaml.safe_load(row.read_text()), yaml.safe_load(text))
            row.write_text(yaml.safe_dump(filled))
        else:
            command = ["bash", "-euc", text.replace("feddep ", "python -m feddep ")]
            subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    (found,) = pd.read_csv(tmp_path / "judged" / "table.csv").to_dict("records")
    assert 0.7 < found["mean"] < 0.9
    assert {file.name for file in (tmp_path / "submissions" / "Spread").iterdir()} == {
        "row.yaml",
        "cora.npz",
    }
