"""The notebook of the guide runs from top to bottom."""

import json
from pathlib import Path

import matplotlib
import pandas as pd

NOTEBOOK = Path(__file__).resolve().parent.parent / "docs" / "guide" / "quickstart.ipynb"


def test_the_notebook_runs():
    matplotlib.use("agg")
    cells = [
        "".join(cell["source"])
        for cell in json.loads(NOTEBOOK.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]
    names: dict[str, object] = {}
    for cell in cells:
        exec(compile(cell, str(NOTEBOOK), "exec"), names)
    runs = names["runs"]
    assert isinstance(runs, pd.DataFrame)
    assert runs["method"].value_counts().to_dict() == {"fedavg": 3, "local": 3, "fedsage_plus": 3}
