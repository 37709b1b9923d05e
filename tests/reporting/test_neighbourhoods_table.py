"""Mended neighbourhoods as tables and figure: averages by hand, the paper's numbers where they belong, and what is drawn."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from feddep import plan
from feddep.__main__ import main
from feddep.config import validate
from feddep.reporting import measured, neighbourhoods
from feddep.storage import write_json, write_text


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    """Two frameworks, two seeds, measured: mending halves the distance of FedSage+, and 3 of 4 nodes miss nobody."""
    config = validate(
        {
            "output": str(tmp_path / "results"),
            "datasets": {"cora": {}},
            "clients": [3],
            "seeds": [0, 1],
            "settings": {"quick": {}},
            "frameworks": {"fedsage_plus": {}, "fedsage_plus_shared": {}},
            "neighbourhoods": [{}],
        }
    )
    for run in plan.measured_runs(config, "neighbourhoods"):
        mean = {"local": 0.4 + 0.2 * run.seed, "mended": 0.2 + 0.1 * run.seed, "empty": 0.3}
        rows = [
            {"nodes": nodes, "neighbourhood": name, "count": 4, "mean": mean[name] * factor, "std": 0.1}
            for nodes, factor in (("all", 1), ("missing", 4))
            for name in mean
        ]
        pairs = [(0, 0, 2), (0, 1, 1), (2, 1 + run.seed, 1)]  # 2 of 4 right with seed 0, 3 of 4 with seed 1
        counts = pd.DataFrame(pairs, columns=["missing", "predicted", "nodes"])
        for name, table in {"distances": pd.DataFrame(rows), "counts": counts}.items():
            write_text(tmp_path / "results" / measured.of_run("neighbourhoods", run, name), table.to_csv(index=False))
    return config


def test_distances_stand_beside_the_paper_s(config):
    summary = neighbourhoods.summarise(neighbourhoods.load(config)[0])
    rows = summary.set_index(["framework", "nodes", "neighbourhood"])
    assert rows.loc[("fedsage_plus", "all", "mended"), "mean"] == pytest.approx(0.25)
    assert rows.loc[("fedsage_plus", "all", "mended"), "seeds"] == 2
    assert rows.loc[("fedsage_plus", "all", "mended"), "paper_fedsage_mean"] == 0.0124
    assert rows.loc[("fedsage_plus", "all", "local"), "paper_fedsage_std"] == 0.0182
    assert rows["paper_fedsage_mean"].notna().sum() == 2  # neither of nodes that miss one, nor of the shared generator


def test_numbers_beside_guesses(config):
    row = neighbourhoods.summarise_counts(neighbourhoods.load(config)[1]).iloc[0]
    assert row["missing"] == 0.25
    assert row["error"] == pytest.approx((2 / 4 + 1 / 4) / 2)
    assert row["error_none"] == 0.5
    assert row["error_mean"] == pytest.approx(0.5)  # the mean is 0.5, which rounds to 0
    assert row["correlation"] == pytest.approx((0.57735 + 0.87039) / 2, abs=1e-4)


def test_a_constant_prediction_has_no_correlation(config):
    counts = neighbourhoods.load(config)[1].assign(predicted=1)
    assert neighbourhoods.summarise_counts(counts)["correlation"].isna().all()


def test_the_figure_has_a_panel_a_place(config):
    drawn = neighbourhoods.figure(neighbourhoods.load(config)[1])
    panels = [ax for ax in drawn.axes if ax.get_title(loc="left")]
    assert [ax.get_title(loc="left") for ax in panels] == ["Cora, M=3\nFedSage+", "Cora, M=3\nFedSage+ with a shared NeighGen"]
    mean = panels[0].get_lines()[0]
    assert list(mean.get_xdata()) == [0, 2]
    assert list(mean.get_ydata()) == pytest.approx([2 / 6, 1.5])


def test_the_stage_writes_tables_and_figure(config, tmp_path):
    write_json(tmp_path / "config.json", config)
    assert main(["neighbourhoods_table", f"--config={tmp_path / 'config.json'}", f"--output={tmp_path}"]) == 0
    page = (tmp_path / "tables/neighbourhoods.md").read_text(encoding="utf-8")
    assert "0.0168 ± 0.0182" in page
    assert "0.738" in page  # 0.0124 / 0.0168
    assert "| 25.0%            | 0.375        | 0.500        | 0.500        | 0.724       |" in page
    assert len(pd.read_csv(tmp_path / "tables/neighbourhoods.csv")) == 2 * 2 * 3
    assert len(pd.read_csv(tmp_path / "tables/missing_neighbours.csv")) == 2
    assert (tmp_path / "figures/missing_neighbours.png").stat().st_size > 0


def test_another_reading_has_a_long_name_and_no_number_of_the_paper(config):
    distances, counts = neighbourhoods.load(config)
    reading = "fedsage_plus,hidden_from=validation,generator_batch=4096,scale=authors"
    assert neighbourhoods.summarise(distances.assign(framework=reading))["paper_fedsage_mean"].isna().all()
    title = neighbourhoods.figure(counts.assign(framework=reading)).axes[0].get_title(loc="left")
    assert " ".join(title.splitlines()[1:]) == "FedSage+, hidden_from=validation, generator_batch=4096, scale=authors"
    assert max(map(len, title.splitlines())) <= 40
