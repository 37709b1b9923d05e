"""Means over seeds, paired tests and Holm's correction, by hand, in closed form and by slow
references.
"""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fabricated import RESPLITS, T_95_TWO_DEGREES, finished, row, study, two_sided_p
from feddep.reporting import statistics


def test_interval_in_closed_form() -> None:
    found = statistics.interval([0.01, 0.02, 0.03], 1 / 3)
    half = T_95_TWO_DEGREES * 0.01 * RESPLITS
    assert found["seeds"] == 3
    assert [found["mean_difference"], found["std_difference"]] == pytest.approx([0.02, 0.01])
    assert [found["low"], found["high"]] == pytest.approx([0.02 - half, 0.02 + half])
    assert found["p"] == pytest.approx(two_sided_p(2 / RESPLITS))
    # Two degrees of freedom: Γ(1) / (Γ(1/2) √1) is one over √π.
    assert [found["d_z"], found["g_z"]] == pytest.approx([2.0, 2.0 / math.sqrt(math.pi)])


@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=12).filter(lambda values: np.std(values) > 1e-6)
)
def test_interval_against_the_quantile(values: list[float]) -> None:
    found, plain, n = statistics.interval(values, 0.25), statistics.interval(values, 0), len(values)
    half = stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) * math.sqrt(1 / n + 0.25)
    assert [found["low"], found["high"]] == pytest.approx(
        [np.mean(values) - half, np.mean(values) + half]
    )
    assert plain["p"] == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    assert (found["p"] < 0.05) == (found["low"] > 0 or found["high"] < 0)


@pytest.mark.parametrize("values", [[], [0.1], [0.1, 0.2], [0.1, 0.1, 0.1]])
def test_too_few_or_equal_differences_have_no_test(values: list[float]) -> None:
    found = statistics.interval(values, 1 / 3)
    assert all(math.isnan(found[name]) for name in ("low", "high", "p", "d_z", "g_z"))
    assert found["seeds"] == len(values)
    assert (
        found["mean_difference"] == pytest.approx(np.mean(values))
        if values
        else math.isnan(found["mean_difference"])
    )


def test_holm_by_hand() -> None:
    assert statistics.holm([0.01, 0.04, math.nan, 0.03]) == pytest.approx(
        [0.03, 0.06, math.nan, 0.06], nan_ok=True
    )


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_against_its_definition(values: list[float]) -> None:
    order = sorted(range(len(values)), key=values.__getitem__)
    expected = {
        place: max(min(1.0, (len(values) - j) * values[order[j]]) for j in range(k + 1))
        for k, place in enumerate(order)
    }
    assert statistics.holm(values).tolist() == pytest.approx(
        [expected[place] for place in range(len(values))]
    )


def test_pairs_share_setting_dataset_clients_and_seed() -> None:
    ours = study(
        *(finished("feddep", seed, 0.9, clients=m) for seed in (0, 1) for m in (5, 10))
    ).runs
    others = (
        finished("fedavg", 0, 0.8),
        finished("fedavg", 1, 0.7, dataset="citeseer"),
        finished("fedavg", 2, 0.7),
    )
    found = statistics.pairs(ours, study(*others).runs)
    assert found[["dataset", "clients", "method", "seed"]].values.tolist() == [
        ["cora", 5, "feddep", 0]
    ]
    assert found["difference"].tolist() == pytest.approx([0.1])
    whole = study(finished("global", 0, 1.0, clients=None)).runs
    assert statistics.pairs(whole, ours)["clients"].tolist() == [5, 10]
    assert statistics.pairs(ours, whole)["difference"].tolist() == pytest.approx([-0.1, -0.1])


def test_compare_has_a_row_a_method_and_place() -> None:
    differences = {5: (0.01, 0.02, 0.03), 10: (0.10, 0.11, 0.09)}
    runs = [
        finished("fedavg", seed, 0.5, clients=m, best_round=4)
        for m in differences
        for seed in range(3)
    ]
    runs += [
        finished("feddep", seed, 0.5 + differences[m][seed], clients=m)
        for m in differences
        for seed in range(3)
    ]
    made = study(*runs, finished("global", 0, 0.9, clients=None)).runs
    found = statistics.compare(
        made[made["method"] != "fedavg"], made[made["method"] == "fedavg"], 1 / 3
    )
    assert found[["method", "clients", "seeds"]].values.tolist() == [
        *(["feddep", 5, 3], ["feddep", 10, 3], ["global", 5, 1], ["global", 10, 1])
    ]
    five, ten = found.iloc[0], found.iloc[1]
    assert [five["mean_difference"], ten["mean_difference"]] == pytest.approx([0.02, 0.1])
    # That of M = 10 is the smaller.
    assert [five["p_holm"], ten["p_holm"]] == pytest.approx([five["p"], 2 * ten["p"]])
    assert (five["unfinished"], found.iloc[2]["unfinished"]) == (0.5, 0.5)  # FedAvg's runs are
    assert statistics.compare(made[:0], made, 1 / 3).empty


def test_no_test_rests_on_runs_that_stalled() -> None:
    runs = [
        finished(name, seed, 0.5 + 0.01 * seed * (name == "feddep"), stalled=name == "fedavg")
        for name in ("fedavg", "feddep")
        for seed in range(3)
    ]
    made = study(*runs).runs
    found = statistics.compare(
        made[made["method"] == "feddep"], made[made["method"] == "fedavg"], 1 / 3
    ).iloc[0]
    assert found["stalled"] == 1
    assert math.isnan(found["p"])
    assert statistics.summarise(made, ["method"])["stalled"].tolist() == [1, 0]


def test_summary_over_seeds() -> None:
    runs = [
        finished("fedavg", seed, 0.8 + 0.01 * seed, seconds=seed, local_before=0.5)
        for seed in range(3)
    ]
    runs += [
        finished("local", seed, 0.5, accuracies=[0.4, 0.6], best_round=[4, 2], local_before=0.5)
        for seed in range(2)
    ]
    runs[-1][1]["local_before"] = math.nan
    table = statistics.summarise(study(*runs).runs, ["method", "clients"])
    fedavg, local = row(table, method="fedavg"), row(table, method="local")
    assert (fedavg["seeds"], fedavg["bytes"], fedavg["trained_rounds"]) == (3, 5000, 4)
    measured = [
        fedavg[name]
        for name in ("mean", "std", "last_mean", "last_std", "seconds", "local_before_mean")
    ]
    assert measured == pytest.approx([0.81, 0.01, 0.79, 0.01, 1.0, 0.5])
    assert local["client_std"] == pytest.approx(np.std([0.4, 0.6, 0.4, 0.6], ddof=1))
    assert local["best_round_mean"] == 3
    assert math.isnan(local["local_before_mean"])  # a seed has not measured it
    assert pd.isna(fedavg["client_std"])
