"""The table of generators beside guesses: averages by hand, lines of the page, and clear errors."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from feddep import plan
from feddep.__main__ import main
from feddep.config import validate
from feddep.reporting import measured as of_runs
from feddep.reporting import quality
from feddep.storage import write_json, write_text

GUESSES = ("DGen", "zero", "mean prototype", "own prototype")


def configuration(root: Path) -> dict[str, Any]:
    return validate(
        {
            "output": str(root / "results"),
            "datasets": {"cora": {}},
            "clients": [2],
            "seeds": [0, 1],
            "settings": {"quick": {}},
            "frameworks": {"fedavg": {}, "feddep": {}},
            "quality": [{"frameworks": {"feddep": {"prototypes": [3, 4]}}}],
        }
    )


def measured(explained: dict[int, float]) -> pd.DataFrame:
    """What a run has measured: DGen explains as much as is given for each client, the other guesses nothing."""
    rows = [
        {"client": client, "hidden": hidden, "guess": guess, "explained": share if guess == "DGen" else 0.0}
        | {"generated": 0.25 * client, "count_error": 1.0 + client}
        for client, share in explained.items()
        for hidden in ("as in training", "anew")
        for guess in GUESSES
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    """A configuration whose four runs are measured."""
    config = configuration(tmp_path)
    for run in plan.measured_runs(config, "quality"):
        table = measured({0: 0.1 + 0.2 * run.seed, 1: 0.3 + 0.2 * run.seed})
        write_text(tmp_path / "results" / of_runs.of_run("quality", run), table.to_csv(index=False))
    return config


def test_means_over_clients_then_over_seeds(config):
    summary = quality.summarise(quality.load(config))
    assert len(summary) == 2 * 2 * len(GUESSES)
    assert set(summary["framework"]) == {"feddep,prototypes=3", "feddep,prototypes=4"}
    row = summary[(summary["guess"] == "DGen") & (summary["hidden"] == "anew")].iloc[0]
    assert row["seeds"] == 2
    assert row["explained_mean"] == pytest.approx(0.3)  # 0.2 with seed 0, 0.4 with seed 1
    assert row["explained_std"] == pytest.approx(0.2 / 2**0.5)
    assert row["generated"] == pytest.approx(0.125)
    assert row["silent"] == pytest.approx(0.5)  # client 0 of two generates nothing
    assert row["count_error"] == pytest.approx(1.5)


def test_the_stage_writes_both_tables(config, tmp_path):
    write_json(tmp_path / "config.json", config)
    assert main(["quality_table", f"--config={tmp_path / 'config.json'}", f"--output={tmp_path}"]) == 0
    page = (tmp_path / "quality.md").read_text(encoding="utf-8")
    assert page.count("| 2   | FedDEP, prototypes=") == 2
    assert page.count("## Cora\n") == 1
    assert "0.3000 ± 0.1414" in page
    assert "12.5%" in page
    assert "50.0%" in page
    assert len(pd.read_csv(tmp_path / "quality.csv")) == 16


def test_a_run_that_is_not_measured_is_named(tmp_path):
    config = configuration(tmp_path)
    with pytest.raises(Exception, match=r"quick/cora/m2/feddep,prototypes=3/seed0 is not measured yet"):
        quality.load(config)
    with pytest.raises(Exception, match="key quality names no run"):
        quality.load({**config, "quality": []})


def test_the_blocks_are_checked(tmp_path):
    with pytest.raises(Exception, match=r"quality\.0\.frameworks: .*prototype_number"):
        validate({**configuration(tmp_path), "quality": [{"frameworks": {"feddep": {"prototype_number": 3}}}]})
