"""Paired comparisons against closed forms: t with two degrees of freedom, Wilcoxon's exact distribution, Holm."""

import math

import pandas as pd
import pytest
from fabricated_studies import finished, study

from feddep.reporting.studies import paired
from feddep.reporting.study_data import Study
from feddep.utils.errors import DataError

T_95_TWO_DEGREES = 4.302652729911275
DIFFERENCES = {5: (0.01, 0.02, 0.03), 10: (0.10, 0.11, 0.09)}


def two_sided_p(t: float) -> float:
    return 1 - abs(t) / math.sqrt(t * t + 2)


@pytest.fixture
def two_cells() -> Study:
    runs = [finished("fedavg", seed, 0.5, clients=m) for m in DIFFERENCES for seed in range(3)]
    runs += [finished("feddep", seed, 0.5 + DIFFERENCES[m][seed], clients=m) for m in DIFFERENCES for seed in range(3)]
    return study(*runs)


def test_table(two_cells: Study) -> None:
    table = paired.tables(two_cells)["table"]
    assert list(table.columns) == paired.COLUMNS
    five, ten, pooled = (row for _, row in table.iterrows())
    assert five[["method", "reference", "clients", "cells", "seeds"]].tolist() == ["feddep", "fedavg", 5, 1, 3]
    half = T_95_TWO_DEGREES * 0.01 / math.sqrt(3)
    assert five[["mean_difference", "std_difference"]].tolist() == pytest.approx([0.02, 0.01])
    assert five[["low", "high"]].tolist() == pytest.approx([0.02 - half, 0.02 + half])
    assert five["p"] == pytest.approx(two_sided_p(0.02 * math.sqrt(3) / 0.01))
    assert ten["p"] == pytest.approx(two_sided_p(0.10 * math.sqrt(3) / 0.01))
    # All three differences have one sign: 2 of the 2³ equally likely patterns are as extreme.
    assert [five["p_wilcoxon"], ten["p_wilcoxon"]] == pytest.approx([0.25, 0.25])
    assert pooled[["cells"]].tolist() == [2]
    assert pooled["mean_difference"] == pytest.approx((0.02 + 0.10) / 2)
    assert pooled[["dataset", "clients", "seeds", "low", "p", "significant"]].isna().all()  # two cells are too few for a test


def test_holm_is_over_the_whole_study(two_cells: Study) -> None:
    table = paired.tables(two_cells)["table"]
    assert table["p_holm"].tolist()[:2] == pytest.approx([table["p"][0], 2 * table["p"][1]])  # p of M = 10 is the smaller
    assert table["p_wilcoxon_holm"].tolist()[:2] == pytest.approx([0.5, 0.5])
    assert table["significant"].tolist()[:2] == [False, True]
    assert table["p"][0] == pytest.approx(0.0742, abs=1e-4)


def test_pooled_over_cells() -> None:
    """Three cells, whose mean differences are 1, 2 and 3 hundredths."""
    places = [("cora", 5), ("cora", 10), ("citeseer", 5)]
    runs = []
    for k, (dataset, m) in enumerate(places):
        for seed, noise in enumerate((-0.05, 0.0, 0.05)):
            runs.append(finished("fedavg", seed, 0.5, dataset=dataset, clients=m))
            runs.append(finished("feddep", seed, 0.51 + 0.01 * k + noise, dataset=dataset, clients=m))
    pooled = paired.tables(study(*runs))["table"].iloc[-1]
    half = T_95_TWO_DEGREES * 0.01 / math.sqrt(3)
    assert pooled[["mean_difference", "low", "high"]].tolist() == pytest.approx([0.02, 0.02 - half, 0.02 + half])
    assert pooled["p"] == pytest.approx(two_sided_p(0.02 * math.sqrt(3) / 0.01))
    assert pooled["cells"] == 3


def test_the_baseline_is_what_comes_first() -> None:
    runs = [finished(name, 0, 0.5) for name in ("feddep,depth=1", "fedavg", "feddep")]
    table = paired.tables(study(*runs))["table"]
    assert set(table["reference"]) == {"feddep,depth=1"}
    assert table["method"].tolist() == ["fedavg", "feddep"]


def test_a_whole_graph_baseline_is_paired_at_each_number_of_clients(two_cells: Study) -> None:
    runs = [finished("global", seed, 0.6, clients=None) for seed in range(3)]
    table = paired.tables(study(*runs, *two_cells.finished))["table"]
    assert table[["method", "clients"]].values.tolist()[:4] == [["fedavg", 5], ["feddep", 5], ["fedavg", 10], ["feddep", 10]]
    assert table["mean_difference"].tolist()[:2] == pytest.approx([-0.1, -0.08])


def test_too_few_or_equal_differences_have_no_test(two_cells: Study) -> None:
    few = study(*(one for one in two_cells.finished if one.run.seed < 2))
    table = paired.tables(few)["table"]
    assert table[["low", "high", "p", "p_holm", "p_wilcoxon", "significant"]].isna().all(axis=None)
    equal = study(*(finished(name, seed, 0.5) for name in ("fedavg", "feddep") for seed in range(3)))
    (row,) = paired.tables(equal)["table"].to_dict("records")
    assert row["mean_difference"] == 0.0
    assert pd.isna(row["p"])
    assert pd.isna(row["p_wilcoxon"])
    assert len(paired.figure(equal, paired.tables(equal)).axes) == 1


def test_nothing_to_pair_is_one_sentence() -> None:
    with pytest.raises(DataError, match="has setting, dataset, clients and seed in common with fedavg"):
        paired.tables(study(finished("fedavg", 0, 0.5), finished("feddep", 1, 0.5)))


def test_markdown_and_figure(two_cells: Study) -> None:
    tables = paired.tables(two_cells)
    page = paired.markdown(two_cells, tables)
    assert page.startswith("Baseline: FedAvg.\n")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()[4:]]
    assert [line[:3] for line in lines] == [
        ["Cora, M=5", "FedDEP", "3"],
        ["Cora, M=10", "FedDEP", "3"],
        ["All cells", "FedDEP", "2 cells"],
    ]
    assert [line[3] for line in lines] == ["+0.0200 [-0.0048, +0.0448]", "+0.1000 [+0.0752, +0.1248] \\*", "+0.0600"]

    drawn = paired.figure(two_cells, tables)
    (ax,) = drawn.axes
    points = [line for line in ax.get_lines() if line.get_marker() == "o"]
    assert [point.get_xdata()[0] for point in points] == pytest.approx([0.02, 0.10, 0.06])
    assert [point.get_markerfacecolor() == "white" for point in points] == [True, False, True]
    (first, second) = (lines.get_segments()[0][:, 0] for lines in ax.collections)
    assert [*first, *second] == pytest.approx([-0.0048414, 0.0448414, 0.0751586, 0.1248414], abs=1e-6)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Cora, M=5", "Cora, M=10", "All cells"]
