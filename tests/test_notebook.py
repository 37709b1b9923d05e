"""The notebook of the guide runs from top to bottom."""

import json
from pathlib import Path

import matplotlib
import pandas as pd
import pytest

from feddep import cli

NOTEBOOK = Path(__file__).resolve().parent.parent / "docs" / "guide" / "quickstart.ipynb"


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.usefixtures("cora", "communities_found_once", "no_plugins")
def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch):
    """With fewer rounds and seeds, and commands in this process."""
    matplotlib.use("agg")
    monkeypatch.chdir(NOTEBOOK.parent)
    cells = [
        "".join(cell["source"])
        for cell in json.loads(NOTEBOOK.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]
    names: dict[str, object] = {"cli": cli}
    process = "subprocess.run(words, check=True, capture_output=True)"
    for cell in cells:
        few = cell.replace('"rounds": 30', '"rounds": 3').replace("seeds=3", "seeds=2")
        here = few.replace(process, "assert cli.main(words[3:]) == 0")
        exec(compile(here, str(NOTEBOOK), "exec"), names)
    runs, judged = names["runs"], names["judged"]
    assert isinstance(runs, pd.DataFrame)
    assert runs["method"].value_counts().to_dict() == {"fedavg": 2, "local": 2, "halved": 2}
    assert isinstance(judged, pd.DataFrame)
    assert judged["method"].tolist() == ["Spread"]
