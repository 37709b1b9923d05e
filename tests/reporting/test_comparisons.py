"""Paired tests and Holm's correction against closed forms."""

import math

import numpy as np
import pandas as pd
import pytest
from fabricated import Results
from hypothesis import given
from hypothesis import strategies as st

from feddep.reporting import accuracy, comparisons, runs

T_95_TWO_DEGREES = 4.302652729911275
"""97.5 % quantile of Student's t with two degrees of freedom, as printed in every table."""


def compare(results: Results) -> pd.DataFrame:
    table = runs.table(runs.load(results.config))
    return comparisons.against_reference(table, accuracy.summarise(table))


def two_sided_p(t: float) -> float:
    """p of a two-sided t-test with two degrees of freedom, which has a closed form."""
    return 1 - abs(t) / math.sqrt(t * t + 2)


def test_paired_by_seed(results: Results) -> None:
    table = compare(results)
    line = table[(table["method"] == "local") & (table["clients"] == 5)].iloc[0]
    # Seed by seed: 0.50 − 0.85, 0.52 − 0.86, 0.51 − 0.87
    assert line["mean_difference"] == pytest.approx(-0.35)
    assert line["std_difference"] == pytest.approx(0.01)
    assert line["p"] == pytest.approx(two_sided_p(0.35 / (0.01 / math.sqrt(3))))
    half = T_95_TWO_DEGREES * 0.01 / math.sqrt(3)
    assert [line["low"], line["high"]] == pytest.approx([-0.35 - half, -0.35 + half])
    assert line["p_holm"] == pytest.approx(2 * line["p"])  # Local at two M; Global's differences do not vary
    assert (line["reference"], line["seeds"]) == ("fedavg", 3)


def test_differences_without_spread_have_no_test(results: Results) -> None:
    table = compare(results)
    lines = table[table["method"] == "global"]
    assert lines["clients"].tolist() == [5, 10]  # one Global, compared at each M
    assert lines["mean_difference"].tolist() == pytest.approx([0.03, 0.03])
    assert lines[["low", "high", "p", "p_holm"]].isna().all(axis=None)


def test_two_seeds_are_too_few_for_a_test(tmp_path) -> None:
    line = compare(Results(tmp_path, seeds=(0, 1), clients=(3,)).write()).iloc[-1]
    assert line["mean_difference"] == pytest.approx((-0.35 - 0.34) / 2)
    assert line[["low", "high", "p", "p_holm"]].isna().all()


def test_without_fedavg_there_is_nothing_to_compare_with(tmp_path) -> None:
    table = compare(Results(tmp_path, methods=("global", "local")).write())
    assert table.empty
    assert list(table.columns) == comparisons.COLUMNS


def test_settings_are_corrected_apart(tmp_path) -> None:
    table = compare(Results(tmp_path, settings=("one", "two"), clients=(3,)).write())
    local = table[table["method"] == "local"]
    assert local["setting"].tolist() == ["one", "two"]
    assert local["p_holm"].tolist() == local["p"].tolist()


def test_holm_by_hand() -> None:
    adjusted = comparisons.holm(np.array([0.01, 0.04, np.nan, 0.03]))
    assert adjusted == pytest.approx([0.03, 0.06, np.nan, 0.06], nan_ok=True)


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_lies_between_no_correction_and_bonferroni(values: list[float]) -> None:
    p = np.array(values)
    adjusted = comparisons.holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(1, len(p) * p) + 1e-12).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
