"""Label distributions as table and figure: distances by hand, what clients hold counted once, and clear errors."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from feddep import plan
from feddep.__main__ import main
from feddep.config import validate
from feddep.reporting import label_distributions, measured
from feddep.storage import write_json, write_text

PREDICTED = {"global": [[5, 5]], "local": [[9, 1], [1, 9]], "fedavg": [[6, 4]]}
"""Of ten test nodes, how many are predicted to be of the first and of the second class, by each model."""


def configuration(root: Path) -> dict[str, Any]:
    return validate(
        {
            "output": str(root / "results"),
            "datasets": {"cora": {}},
            "clients": [2],
            "seeds": [3, 4],
            "settings": {"quick": {}},
            "frameworks": {name: {} for name in PREDICTED},
            "label_distributions": [{}],
        }
    )


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    """A configuration whose runs are measured."""
    config = configuration(tmp_path)
    for run in plan.measured_runs(config, "label_distributions"):
        counts = {"true": [[5, 5]], "predicted": PREDICTED[run.framework]}
        if run.clients is not None:
            counts["held"] = [[20, 0], [10, 30]]
        rows = [
            {"what": what, "number": number, "label": label, "nodes": nodes}
            for what, models in counts.items()
            for number, model in enumerate(models)
            for label, nodes in enumerate(model)
        ]
        file = tmp_path / "results" / measured.of_run("label_distributions", run)
        write_text(file, pd.DataFrame(rows).to_csv(index=False))
    return config


def test_distances_by_hand(config):
    summary = label_distributions.summarise(label_distributions.load(config))
    assert [None if pd.isna(name) else name for name in summary["framework"]] == ["global", None, "local", "fedavg"]
    assert summary["mean"].tolist() == pytest.approx([0.0, (0.5 + 0.25) / 2, 0.4, 0.1])
    assert summary["seeds"].tolist() == [2, 2, 2, 2]  # two frameworks tell what clients hold, and it counts once
    assert summary["std"].tolist() == pytest.approx([0, 0, 0, 0])


def test_the_figure_shows_the_first_seed(config):
    drawn = label_distributions.figure(label_distributions.load(config))
    left, right = drawn.axes
    assert left.get_title(loc="left") == "Cora, M=2: held"
    assert [label.get_text() for label in left.get_yticklabels()] == ["all nodes", "client 1", "client 2"]
    names = ["test nodes", "Global", "Local, client 1", "Local, client 2", "FedAvg"]
    assert [label.get_text() for label in right.get_yticklabels()] == names
    first_class = [bar.get_width() for bar in right.patches[::2]]
    assert first_class == pytest.approx([0.5, 0.5, 0.9, 0.1, 0.6])


def test_the_stage_writes_table_and_figure(config, tmp_path):
    write_json(tmp_path / "config.json", config)
    assert main(["label_distributions_table", f"--config={tmp_path / 'config.json'}", f"--output={tmp_path}"]) == 0
    page = (tmp_path / "tables/label_distributions.md").read_text(encoding="utf-8")
    assert "held by clients" in page
    assert re.search(r"\| 2 +\| Local +\| 0\.4000 ± 0\.0000 +\|", page)
    assert len(pd.read_csv(tmp_path / "tables/label_distributions.csv")) == 4
    assert (tmp_path / "figures/label_distributions.png").stat().st_size > 0


def test_a_run_that_is_not_measured_is_named(tmp_path):
    with pytest.raises(Exception, match=r"quick/cora/whole/global/seed3 is not measured yet"):
        label_distributions.load(configuration(tmp_path))
