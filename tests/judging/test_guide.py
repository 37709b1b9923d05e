"""docs/guide/judge.md, from its first block to its last."""

import re
import shlex
from functools import cache, partial
from pathlib import Path

import pandas as pd
import pytest
import yaml

from feddep import cli
from feddep.config.loading import merged
from feddep.graph import partition
from feddep.graph.graph import Graph
from workspace import REPOSITORY


@pytest.mark.data
@pytest.mark.slow
def test_from_an_empty_file_to_a_row(cora: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The judge finds communities anew; here they are found once a seed."""
    monkeypatch.chdir(tmp_path)
    once = cache(partial(partition.find_communities, cora))
    monkeypatch.setattr(partition, "find_communities", lambda graph, seed: once(seed))
    for name in ("config", "studies", "results/runs"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).symlink_to(REPOSITORY / name)
    page = (REPOSITORY / "docs" / "guide" / "judge.md").read_text(encoding="utf-8")
    for kind, text in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if kind == "python":
            Path("spread.py").write_text(text)
        elif kind == "yaml":
            row = Path("judged", "row.yaml")
            filled = merged(yaml.safe_load(row.read_text()), yaml.safe_load(text))
            row.write_text(yaml.safe_dump(filled))
        else:
            for program, *arguments in map(shlex.split, text.splitlines()):
                if program == "feddep":
                    assert cli.main(arguments) == 0
                else:
                    exec(Path(*arguments).read_text(), {})
    (found,) = pd.read_csv("judged/table.csv").to_dict("records")
    assert 0.7 < found["mean"] < 0.9
    assert {file.name for file in Path("submissions", "Spread").iterdir()} == {
        "row.yaml",
        "cora.npz",
    }
