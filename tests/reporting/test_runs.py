"""Only finished runs of exactly what is asked for are read."""

import pytest
from fabricated import BEST, BEST_ROUND, CLIENT_OFFSETS, MEGABYTE, ROUNDS, VALIDATION_ABOVE_BEST, Results

from feddep.reporting import runs
from feddep.utils.errors import DataError
from feddep.utils.files import read_result, write_result


def test_one_row_a_run(results: Results) -> None:
    table = runs.table(runs.load(results.config))
    assert len(table) == 3 + 2 * 2 * 3  # global once, local and fedavg at each M
    row = table[(table["method"] == "fedavg") & (table["clients"] == 10) & (table["seed"] == 1)].iloc[0]
    assert row["best"] == BEST["fedavg"][1]
    assert row["validation"] == pytest.approx(BEST["fedavg"][1] + VALIDATION_ABOVE_BEST)
    assert row["bytes"] == 10 * 2 * ROUNDS * MEGABYTE  # clients, both directions, rounds
    assert (row["rounds"], row["best_round"]) == (ROUNDS, BEST_ROUND)
    assert row["client_accuracies"] == []


def test_models_of_clients(results: Results) -> None:
    table = runs.table(runs.load(results.config))
    row = table[(table["method"] == "local") & (table["clients"] == 5) & (table["seed"] == 0)].iloc[0]
    assert row["client_accuracies"] == pytest.approx([0.5 + CLIENT_OFFSETS[k % 2] for k in range(5)])
    assert row["best_round"] == pytest.approx((2 + 4 + 2 + 4 + 2) / 5)
    assert row["bytes"] == 0


def test_methods_that_see_the_whole_graph_have_no_clients(results: Results) -> None:
    table = runs.table(runs.load(results.config))
    assert table.loc[table["method"] == "global", "clients"].isna().all()


def test_curves_have_one_row_a_round(results: Results) -> None:
    curves = runs.curves(runs.load(results.config))
    assert len(curves) == 15 * ROUNDS
    last = curves[(curves["method"] == "global") & (curves["seed"] == 2) & (curves["round"] == ROUNDS)].iloc[0]
    assert (last["loss"], last["test"]) == (0.25, pytest.approx(0.88))


def test_a_run_that_has_not_finished(results: Results) -> None:
    run = next(run for run in results.runs() if run.method == "fedavg")
    results.metrics_path(run).unlink()
    with pytest.raises(DataError, match=r"feddep/cora/m5/fedavg/seed0 has not finished .*run `snakemake`"):
        runs.load(results.config)


def test_a_run_of_another_configuration_is_not_used(results: Results) -> None:
    config = results.config
    config["settings"]["feddep"]["rounds"] += 1
    with pytest.raises(DataError, match=r"seed0/metrics.json is stale: .*run `snakemake`"):
        runs.load(config)


def test_a_run_with_another_key_is_not_used(results: Results) -> None:
    path = results.metrics_path(list(results.runs())[-1])
    write_result(path, {**read_result(path), "key": "0" * 64})
    with pytest.raises(DataError, match="is stale: its key is 000000000000…"):
        runs.load(results.config)


@pytest.mark.parametrize(("part", "sentence"), [("key", "is stale"), *((part, "no record") for part in ("result", "provenance"))])
def test_metrics_that_lack_a_part(results: Results, part: str, sentence: str) -> None:
    path = results.metrics_path(next(results.runs()))
    metrics = read_result(path)
    del metrics[part]
    write_result(path, metrics)
    with pytest.raises(DataError, match=sentence):
        runs.load(results.config)


@pytest.mark.parametrize("accuracy", [84.0, -0.1, float("1e300")])
def test_an_accuracy_that_is_no_share(results: Results, accuracy: float) -> None:
    path = results.metrics_path(next(results.runs()))
    metrics = read_result(path)
    metrics["result"]["accuracy"]["best"] = accuracy
    write_result(path, metrics)
    with pytest.raises(DataError, match=r"metrics\.json holds no result of a run \(result\.accuracy\.best: .*(less|greater)"):
        runs.load(results.config)


@pytest.mark.parametrize("part", ["accuracy", "validation", "curve", "communication", "clients", "best_round"])
def test_a_result_that_lacks_a_part(results: Results, part: str) -> None:
    path = results.metrics_path(next(results.runs()))
    metrics = read_result(path)
    del metrics["result"][part]
    write_result(path, metrics)
    with pytest.raises(DataError, match=rf"feddep/cora/m5/fedavg/seed0/metrics.json holds no result .*{part}: Field required"):
        runs.table(runs.load(results.config))
