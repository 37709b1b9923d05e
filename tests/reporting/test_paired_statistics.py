"""Means over seeds, differences paired by seed, and verdicts on a graph and over graphs."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fabricated import finished, row, study
from feddep.reporting import inference, statistics

MARGIN = {"accuracy": 0.01, "strict": 0.005}


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
    runs = [finished("fedavg", seed, 0.5, clients=m) for m in differences for seed in range(3)]
    runs += [
        finished("feddep", seed, 0.5 + differences[m][seed], clients=m)
        for m in differences
        for seed in range(3)
    ]
    made = study(*runs, finished("global", 0, 0.9, clients=None)).runs
    found = statistics.compare(
        made[made["method"] != "fedavg"], made[made["method"] == "fedavg"], MARGIN
    )
    assert found[["method", "clients", "seeds"]].values.tolist() == [
        *(["feddep", 5, 3], ["feddep", 10, 3], ["global", 5, 1], ["global", 10, 1])
    ]
    five, ten = found.iloc[0], found.iloc[1]
    assert [five["mean_difference"], ten["mean_difference"]] == pytest.approx([0.02, 0.1])
    # That of M = 10 is the smaller; Global is no method of their family.
    assert [five["p_holm"], ten["p_holm"]] == pytest.approx(
        [statistics.tested(differences[5], MARGIN)["p"], 2 * ten["p"]]
    )
    assert found["won"].tolist() == [1, 1, 1, 1]
    assert statistics.compare(made[:0], made, MARGIN).empty


def differing(changes: dict[str, tuple[float, ...]], **measured: Any) -> pd.DataFrame:
    """Runs of methods whose accuracies differ so from those of FedAvg, seed by seed."""
    runs = [finished("fedavg", seed, 0.5) for seed in range(3)]
    runs += [
        finished(name, seed, 0.5 + change, **measured)
        for name, values in changes.items()
        for seed, change in enumerate(values)
    ]
    return study(*runs).runs


def judged(changes: dict[str, tuple[float, ...]], **measured: Any) -> pd.DataFrame:
    made = differing(changes, **measured)
    of_reference = made["method"] == "fedavg"
    return statistics.compare(made[~of_reference], made[of_reference], MARGIN)


def test_verdicts_on_a_graph() -> None:
    changes = {
        "feddep": (0.051, 0.05, 0.049),
        "fedprox": (-0.051, -0.05, -0.049),
        "fedper": (0.0001, -0.0001, 0.0),
        "moon": (0.007, 0.0071, 0.0069),
        "ditto": (0.2, -0.2, 0.1),
    }
    found = judged(changes).set_index("method")
    assert found["verdict"].to_dict() == {
        "feddep": "better",
        "fedprox": "worse",
        "fedper": "equivalent",
        "moon": "equivalent",
        "ditto": "undecided",
    }
    assert found["verdict_strict"].to_dict() == {**found["verdict"].to_dict(), "moon": "better"}
    raw = [statistics.tested(values, MARGIN)["p_equivalent"] for values in changes.values()]
    assert found["p_equivalent"].tolist() == pytest.approx(inference.holm(raw).tolist())
    assert found.loc["ditto", "detectable"] == pytest.approx(
        inference.detectable(np.std(changes["ditto"], ddof=1), 3, 5)
    )
    assert found["won"].tolist() == pytest.approx([1, 0, 1 / 3, 1, 2 / 3])


def test_families_are_corrected_apart() -> None:
    values = (0.011, 0.02, 0.03)
    alone = judged({"feddep": values})["p_holm"].iloc[0]
    names = ["feddep", "fedgcn", "fedavg_oracle", "local"]
    beside = judged(dict.fromkeys(names, values))["p_holm"]
    assert beside.tolist() == pytest.approx([alone, 2 * alone, 2 * alone, alone])


def test_graphs_are_corrected_apart_and_their_variants_together() -> None:
    rows = [
        {"method": "feddep", "dataset": name, **statistics.tested(values, MARGIN)}
        for name, values in (
            ("cora", (0.01, 0.02, 0.03)),
            ("cora,labelled=0.05", (0.02, 0.03, 0.05)),
            ("citeseer", (0.01, 0.02, 0.03)),
        )
    ]
    table = pd.DataFrame(rows).assign(seeds=3, stalled=0.0, unfinished=0.0)
    found = statistics.judged(table)
    expected = [*inference.holm(table["p"][:2]), table["p"][2]]
    assert found["p_holm"].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(("flaw", "share"), [("stalled", 0.6), ("unfinished", 0.6)])
def test_flawed_differences_enter_no_verdict_and_no_family(flaw: str, share: float) -> None:
    sound = {"seeds": 3, "stalled": 0.5, "unfinished": 0.5, "dataset": "cora"}
    rows = [
        {"method": name, **sound, **statistics.tested((0.01, 0.011, 0.012), MARGIN), **own}
        for name, own in (("feddep", {}), ("fedper", {flaw: share}))
    ]
    found = statistics.judged(pd.DataFrame(rows))
    assert found["verdict"].tolist() == ["better", flaw]
    assert found["p_holm"].iloc[0] == found["p"].iloc[0]
    assert np.isnan(found["p_holm"].iloc[1])
    # Of two flaws stalling counts.
    both = pd.DataFrame([{**sound, "stalled": 1.0, "unfinished": 1.0}])
    assert statistics.flaws(both).tolist() == ["stalled"]


def test_the_larger_share_of_both_sides_is_unfinished() -> None:
    made = differing({"feddep": (0.1, 0.2, 0.3)}, best_round=4)
    ours, reference = made[made["method"] == "feddep"], made[made["method"] == "fedavg"]
    assert statistics.compare(ours, reference, MARGIN)["unfinished"].tolist() == [1]
    assert statistics.compare(reference, ours, MARGIN)["unfinished"].tolist() == [1]


def over_graphs(gains: dict[str, list[float]]) -> pd.DataFrame:
    """A row a method and graph."""
    rows = [
        {"method": name, "dataset": f"graph{k}", "mean_difference": gain}
        for name, values in gains.items()
        for k, gain in enumerate(values)
    ]
    return pd.DataFrame(rows).assign(stalled=0.0, unfinished=0.0)


def test_verdicts_over_graphs() -> None:
    wide = [0.03, -0.02, 0.05, -0.04, 0.02, -0.03, 0.01]
    gains = {
        "feddep": [0.02, 0.03, 0.025, 0.04, 0.05, 0.021, 0.035],
        "moon": wide,
        "fedper": [0.001, -0.001, 0.002, 0.0, 0.0015, -0.0012, 0.0007],
        "local": [-0.05, -0.06, -0.052, -0.07, -0.08, -0.051, -0.065],
        "global": wide,
    }
    found = statistics.on_graphs(over_graphs(gains), MARGIN)
    assert found["mean_difference"].is_monotonic_decreasing
    found = found.set_index("method")
    assert found["verdict"].to_dict() == {
        "feddep": "better",
        "fedper": "equivalent",
        "moon": "undecided",
        "global": "undecided",
        "local": "worse",
    }
    four = dict.fromkeys(("feddep", "moon", "ditto", "fedproto"), gains["feddep"])
    many = statistics.on_graphs(over_graphs(four), MARGIN)
    assert many["verdict"].tolist() == ["undecided"] * 4  # 4 p is 0.0625
    raw = {name: stats.wilcoxon(values).pvalue for name, values in gains.items()}
    ours = ["feddep", "moon", "fedper"]
    assert found["p_holm"][ours].tolist() == pytest.approx(
        inference.holm([raw[name] for name in ours]).tolist()
    )
    for name in ("global", "local"):
        assert found.loc[name, "p_holm"] == pytest.approx(raw[name])
    raw = {
        name: stats.ttest_1samp(values, 0.01, alternative="less").pvalue
        for name, values in gains.items()
    }
    assert found["p_no_gain"][ours].tolist() == pytest.approx(
        inference.holm([raw[name] for name in ours]).tolist()
    )
    columns = ["probable_better", "probable_equivalent", "probable_worse"]
    assert found[columns].idxmax(axis="columns").to_dict() == {
        "feddep": "probable_better",
        "fedper": "probable_equivalent",
        "moon": columns[np.argmax(inference.region_probabilities(wide, 0.01))],
        "global": columns[np.argmax(inference.region_probabilities(wide, 0.01))],
        "local": "probable_worse",
    }
    assert found.loc["local", "detectable"] == pytest.approx(
        inference.detectable(np.std(gains["local"], ddof=1), 7, 1)
    )


def test_divisions_of_a_graph_are_one_and_flawed_ones_none() -> None:
    table = over_graphs({"feddep": [0.01, 0.02, 0.03, 0.9]})
    again = table.iloc[[0]].assign(dataset="graph0,partition=metis", mean_difference=0.05)
    reference = table.iloc[[0]].assign(method="fedavg", mean_difference=np.nan)
    table.loc[3, "stalled"] = 0.6
    found = statistics.on_graphs(pd.concat([table, again, reference]), MARGIN)
    assert found["method"].tolist() == ["feddep"]
    assert found["graphs"].tolist() == [3]
    assert found["mean_difference"].tolist() == pytest.approx([(0.03 + 0.02 + 0.03) / 3])


def test_verdicts_are_counted() -> None:
    words = ["undecided", "worse", "stalled", "undecided", "better", None]
    assert statistics.counted(pd.DataFrame({"verdict": words})) == (
        "5 differences: 1 better, 1 worse, 2 undecided, 1 stalled"
    )


def test_no_test_rests_on_runs_that_stalled() -> None:
    runs = [
        finished(name, seed, 0.5 + 0.01 * seed * (name == "feddep"), stalled=name == "fedavg")
        for name in ("fedavg", "feddep")
        for seed in range(3)
    ]
    made = study(*runs).runs
    found = statistics.compare(
        made[made["method"] == "feddep"], made[made["method"] == "fedavg"], MARGIN
    ).iloc[0]
    assert found["stalled"] == 1
    assert math.isnan(found["p_holm"])
    assert found["verdict"] == "stalled"
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


def test_a_finding_names_what_beats_the_reference_by_the_margin() -> None:
    """Within the margin, undecided or seeing more of the graph, a method beats nothing."""
    rows = [
        ("fedprox", 0.004, "better"),
        ("fedala", 0.03, "undecided"),
        ("fedgcn", 0.05, "better"),
        ("local", -0.2, "worse"),
    ]
    table = pd.DataFrame(rows, columns=["method", "mean_difference", "verdict"])
    table["reference"] = "fedavg"
    margin = {"accuracy": 0.01}
    found = statistics.finding(table, margin)
    assert found.startswith("No method beats FedAvg")
    assert found.endswith("1 of 1")  # FedGCN
    table.loc[1, "verdict"] = "better"
    assert "FedALA" in statistics.finding(table, margin)
    assert "FedProx" not in statistics.finding(table, margin)
    assert "1 of 2" in statistics.finding(table, margin)
    alone = table[table["method"] == "fedgcn"]
    assert "FedGCN" in statistics.finding(alone, margin)
    assert "FedGCN" not in statistics.finding(alone.assign(verdict="stalled"), margin)
