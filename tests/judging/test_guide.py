"""docs/guide/judge.md, from its first block to its last."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
import yaml

from feddep import cli
from feddep.config.loading import merged
from workspace import REPOSITORY


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.usefixtures("cora", "communities_found_once")
def test_from_an_empty_file_to_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
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
