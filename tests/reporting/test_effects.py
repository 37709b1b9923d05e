"""Standardised effects against closed forms, and their page."""

import math

import numpy as np
import pytest
from fabricated import Results

from feddep.reporting import effects
from feddep.reporting.results import collect


def test_effect_sizes_by_hand(results: Results) -> None:
    table = effects.effects(collect(results.config).comparisons)
    assert list(table.columns) == effects.COLUMNS
    line = table[(table["method"] == "local") & (table["clients"] == 5)].iloc[0]
    assert line["d_z"] == pytest.approx(-0.35 / 0.01)
    assert line["g_z"] == pytest.approx(-35 / math.sqrt(math.pi))  # Γ(1) / Γ(1/2)
    assert line["low"] < line["mean_difference"] < line["high"] < 0
    without_spread = table[table["method"] == "global"]
    assert without_spread[["d_z", "g_z", "low"]].isna().all(axis=None)


def test_g_is_without_bias(results: Results) -> None:
    """Over many draws its mean is the true effect, and d's is not."""
    rows = collect(results.config).comparisons.iloc[[0] * 20_000].reset_index(drop=True)
    draws = np.random.default_rng(0).normal(1.0, 1.0, (len(rows), 4))
    rows = rows.assign(seeds=4, mean_difference=draws.mean(axis=1), std_difference=draws.std(axis=1, ddof=1), low=0.0)
    table = effects.effects(rows)
    assert table["g_z"].mean() == pytest.approx(1.0, abs=0.02)
    assert table["d_z"].mean() > 1.3


def test_the_page_has_a_line_a_method(results: Results) -> None:
    page = collect(results.config).tables()["effects.md"]
    (local,) = [line for line in page.splitlines() if line.startswith("| Local")]
    assert local.count("-0.3500 [-0.3748, -0.3252] (-19.75)") == 2
    assert "## Cora" in page
