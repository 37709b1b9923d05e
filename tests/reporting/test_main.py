"""The main tables: accuracy, comparisons, costs, partitions and agreement with the papers, by
hand; and their files.
"""

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fabricated import RAW, finished, publish, row, table
from feddep.config.loading import Config
from feddep.reporting import load, main, output

TABLE = {**RAW["tables"][0], "methods": ["global", "local", "fedavg"]}
MARGIN = {"accuracy": 0.01, "strict": 0.005}
BEST = {"global": (0.88, 0.89, 0.90), "local": (0.50, 0.52, 0.51), "fedavg": (0.85, 0.86, 0.87)}


def runs(setting: str = "feddep", **measured: Any) -> pd.DataFrame:
    """Global, Local and FedAvg on Cora among 5 and 10 clients, three seeds."""
    found = [
        finished(method, seed, best, clients=m, setting=setting, **measured)
        for method, values in BEST.items()
        for m in ([None] if method == "global" else [5, 10])
        for seed, best in enumerate(values)
    ]
    return table(found)


def test_accuracy_stands_beside_the_papers() -> None:
    summary = main.accuracy(load.tidy(runs(local_before=0.4)))
    places = list(zip(summary["method"], summary["clients"].fillna(0), strict=True))
    assert places == [("global", 0), ("local", 5), ("local", 10), ("fedavg", 5), ("fedavg", 10)]
    papers = ["paper_feddep_mean", "paper_feddep_std", "paper_fedsage_mean", "paper_fedsage_std"]
    assert list(summary.columns) == [*main.ACCURACY, *papers, *main.EFFORT]
    assert summary[papers].iloc[3].tolist() == [0.8555, 0.014, 0.8645, 0.005]
    assert summary[["mean", "std", "local_before_mean"]].iloc[3].tolist() == pytest.approx(
        [0.86, 0.01, 0.4]
    )
    assert summary["assumes"].tolist() == ["whole graph in one place", "", "", "", ""]
    assert summary["local_after_mean"].isna().all()


def test_comparisons_are_paired_and_corrected_by_setting() -> None:
    both = pd.concat([runs(), runs("adam")], ignore_index=True)
    found = main.comparisons(load.tidy(both), MARGIN)
    assert found[["setting", "method", "clients"]].values.tolist() == [
        [setting, method, m]
        for setting in ("feddep", "adam")
        for method in ("global", "local")
        for m in (5, 10)
    ]
    whole, local = found[found["method"] == "global"], found[found["method"] == "local"]
    # One Global, compared at each M.
    assert whole["mean_difference"].tolist() == pytest.approx([0.03] * 4)
    assert whole["p"].isna().all()
    assert local["mean_difference"].tolist() == pytest.approx([-0.35] * 4)
    assert local["p_holm"].tolist() == pytest.approx((2 * local["p"]).tolist())
    assert main.comparisons(load.tidy(runs()[:3]), MARGIN).empty


def test_costs_are_means_over_seeds() -> None:
    sent = json.dumps({"model": 4_000_000, "prototypes": 1000})
    before = json.dumps({"pretrain": 1.5, "generator": 2.0})
    found = main.costs(runs(bytes=4_001_000, bytes_by_kind=sent, seconds_before=before))
    fedavg = row(found, method="fedavg", clients=5)
    assert (fedavg["bytes"], fedavg["bytes_beside"], fedavg["seeds"]) == (4_001_000, 1000, 3)
    assert [fedavg[f"seconds{stage}"] for stage in ("", "_pretrain", "_generator")] == [
        2.0,
        1.5,
        2.0,
    ]
    assert math.isnan(fedavg["seconds_prototypes"])


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return publish(tmp_path_factory.mktemp("main"), {**RAW, "tables": [TABLE], "studies": []})


@pytest.mark.slow
def test_the_folder_of_the_main_tables(config: Config, tmp_path: Path) -> None:
    output.write(tmp_path, main.contents(config))
    tables = [
        f"{name}.csv"
        for name in (
            "accuracy",
            "comparisons",
            "costs",
            "effects",
            "graphs",
            "partitions",
        )
    ]
    drawn = [f"{name}.svg" for name in ("partitions", "accuracy_feddep", "curves_feddep")]
    assert {path.name for path in tmp_path.iterdir()} == {
        *tables,
        *drawn,
        "page.md",
    }
    assert list(pd.read_csv(tmp_path / "comparisons.csv").columns) == main.COMPARISONS
    assert list(pd.read_csv(tmp_path / "effects.csv").columns) == main.EFFECTS
    page = (tmp_path / "page.md").read_text()
    assert not any(f" {word} " in page for word in ("nan", "None", "NA", "<NA>"))


def test_without_published_numbers_ours_stand_alone(
    config: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    found = main.contents(config)
    assert list(found["accuracy.csv"].columns) == [*main.ACCURACY, *main.EFFORT]
    assert not [name for name in found["partitions.csv"] if name.startswith(("feddep", "fedsage"))]


def test_partitions_stand_beside_the_papers(config: Config) -> None:
    found = main.partitions(main.statistics_of_partitions(config, {}))
    cora = row(found, dataset="cora", clients=5)
    assert [
        cora["missing_edges"],
        cora["missing_edges_std"],
        cora["mean_client_nodes"],
    ] == pytest.approx([51, 1, 20])
    assert (cora["seeds"], cora["nodes"], cora["feddep_missing_edges"], cora["fedsage_edges"]) == (
        3,
        100,
        552,
        5429,
    )
