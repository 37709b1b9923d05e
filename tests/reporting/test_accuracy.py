"""The main table against numbers computed by hand."""

import pandas as pd
import pytest
from fabricated import MEGABYTE, ROUNDS, Results, sample_std

from feddep.reporting import accuracy, runs


def summary(results: Results) -> pd.DataFrame:
    return accuracy.summarise(runs.table(runs.load(results.config)))


def row(table: pd.DataFrame, method: str, clients: int | None, **others: str) -> pd.Series:
    table = table[table["method"] == method]
    for column, value in others.items():
        table = table[table[column] == value]
    table = table[table["clients"].isna() if clients is None else table["clients"] == clients]
    assert len(table) == 1
    return table.iloc[0]


def test_mean_and_spread_over_seeds(results: Results) -> None:
    line = row(summary(results), "fedavg", 5)
    assert line["seeds"] == 3
    assert line["mean"] == pytest.approx((0.85 + 0.86 + 0.87) / 3)
    assert line["std"] == pytest.approx(0.01)  # sqrt((0.01² + 0 + 0.01²) / 2)
    assert line["last_mean"] == pytest.approx(0.84)
    assert line["last_std"] == pytest.approx(0.01)
    assert line["validation_mean"] == pytest.approx(0.87)
    assert (line["rounds"], line["best_round_mean"]) == (ROUNDS, 3)
    assert line["bytes"] == 5 * 2 * ROUNDS * MEGABYTE
    assert pd.isna(line["client_std"])


def test_spread_over_clients_and_seeds_of_local_models(results: Results) -> None:
    line = row(summary(results), "local", 10)
    models = [mean + offset for mean in (0.50, 0.52, 0.51) for offset in (-0.1, 0.1) * 5]
    assert line["mean"] == pytest.approx(0.51)
    assert line["std"] == pytest.approx(0.01)
    assert line["client_std"] == pytest.approx(sample_std(*models))
    assert line["bytes"] == 0


def test_published_numbers_stand_beside_ours(results: Results) -> None:
    table = summary(results)
    papers = ["paper_feddep_mean", "paper_feddep_std", "paper_fedsage_mean", "paper_fedsage_std"]
    assert row(table, "fedavg", 5)[papers].tolist() == [0.8555, 0.014, 0.8645, 0.005]
    assert row(table, "local", 10)[papers].tolist() == [0.4334, 0.083, 0.2798, 0.008]
    assert row(table, "global", None)[papers].tolist() == [0.8955, 0.004, 0.8701, 0.0042]


def test_columns_and_order_of_rows(results: Results) -> None:
    table = summary(results)
    assert list(table.columns) == accuracy.COLUMNS
    places = list(zip(table["method"], table["clients"].fillna(0), strict=True))
    assert places == [("global", 0), ("local", 5), ("local", 10), ("fedavg", 5), ("fedavg", 10)]


def test_one_seed_has_no_spread(tmp_path) -> None:
    line = row(summary(Results(tmp_path, seeds=(1,)).write()), "fedavg", 5)
    assert (line["seeds"], line["mean"]) == (1, 0.86)
    assert pd.isna(line["std"])
    assert pd.isna(line["last_std"])


def test_graphs_that_no_paper_has(tmp_path) -> None:
    datasets = {"tiny": {"features": "raw", "synthetic": {"nodes": 240}}, "cora": {"features": "raw"}}
    table = summary(Results(tmp_path, datasets=datasets, clients=(3,)).write())
    assert list(dict.fromkeys(table["dataset"])) == ["cora", "tiny"]
    tiny = row(table, "fedavg", 3, dataset="tiny")
    assert tiny["mean"] == pytest.approx(0.86)
    assert tiny[[column for column in table if column.startswith("paper_")]].isna().all()


def test_each_setting_has_its_rows_in_the_order_of_the_configuration(tmp_path) -> None:
    table = summary(Results(tmp_path, settings=("plain", "adam"), clients=(3,)).write())
    assert table["setting"].tolist() == ["plain"] * 3 + ["adam"] * 3
    assert row(table, "fedavg", 3, setting="adam")["paper_feddep_mean"] == 0.8571
