"""Noised degrees: noise that no two graphs share, shares by hand, and a page without the true counts."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from small import of_run, small_task

from feddep.experiment.plan import Run
from feddep.measurements import MEASUREMENTS, degree_histograms, frame
from feddep.measurements.private_histogram import degree_histogram
from feddep.methods import registry

MLP = registry.find("vertical_mlp")


def measured(dataset: str, seed: int = 0) -> list[dict[str, object]]:
    task = dataclasses.replace(small_task("vertical_mlp", None), seed=seed)
    run = Run("quick", dataset, None, "vertical_mlp", seed)
    return MEASUREMENTS["degree_histograms"].measure(run, task, MLP, MLP.parameters())["degree_histograms"]


def test_only_noised_counts_are_kept_and_no_two_graphs_share_noise() -> None:
    truth = degree_histogram(small_task("vertical_mlp", None).graph.degrees)
    rows = measured("cora")
    assert [row["degree"] for row in rows] == list(range(51))
    assert {row["of"] for row in rows} == {240}
    assert set(rows[0]) == {*of_run(Run("quick", "cora", None, "vertical_mlp", 0)), "degree", "nodes", "of"}
    draws = {
        name: np.array([row["nodes"] for row in measured(*name)]) - truth for name in (("cora", 0), ("pubmed", 0), ("cora", 1))
    }
    for noise in draws.values():
        assert 0.5 * degree_histograms.NOISE < noise.std() < 2 * degree_histograms.NOISE
    assert np.abs(draws["cora", 0] - draws["pubmed", 0]).max() > 0
    assert np.abs(draws["cora", 0] - draws["cora", 1]).max() > 0
    assert measured("cora,labelled=0.1")[3]["nodes"] == rows[3]["nodes"]  # of the same graph a second draw would cost ε again


def test_the_noise_is_that_of_sensitivity_four() -> None:
    k = np.arange(-4000, 4001)
    law = np.exp(-0.1 / 4 * np.abs(k))
    assert pytest.approx(np.sqrt((law / law.sum()) @ k**2)) == degree_histograms.NOISE


@pytest.fixture
def counts() -> pd.DataFrame:
    """Ten nodes of each degree on Cora; a second seed, and PubMed with a negative count."""
    rows = []
    for dataset, seed, nodes in (("pubmed", 0, -5), ("cora", 1, 99), ("cora", 0, 10)):
        run = of_run(Run("quick", dataset, None, "vertical_mlp", seed))
        rows += [{**run, "degree": degree, "nodes": nodes, "of": 1000} for degree in range(51)]
    return frame(rows)


def test_shares_by_hand(counts: pd.DataFrame) -> None:
    first = degree_histograms.first_draws(counts)
    assert first["dataset"].unique().tolist() == ["cora", "pubmed"]
    assert set(first.loc[first["dataset"] == "cora", "nodes"]) == {10}
    found = degree_histograms.shares(first[first["dataset"] == "cora"])
    assert [share for share, _ in found] == pytest.approx([0.01, 0.03, 0.05, 0.10, 0.90, 0.80, 0.01])
    assert found[3][1] == found[4][1] == pytest.approx(degree_histograms.NOISE * 10**0.5 / 1000)


def test_the_page(counts: pd.DataFrame) -> None:
    page = degree_histograms.page({"degree_histograms": counts})
    text = page["tables/degree_histograms.md"]
    assert "scale 4/ε = 40" in text
    assert "gives\nε = 0.2 " in text
    assert re.search(r"\| nodes +\| degree 0 +\| below 3 .* below 10 +\| 10 or more .* 50 or more", text)
    assert re.search(r"\| Cora +\| 1000 +\| 0\.010 ± 0\.057 +\|", text)
    assert re.search(r"\| PubMed +\| 1000 +\| -0\.005 ± 0\.057 +\|", text)
    assert len(page["tables/degree_histograms.csv"]) == 2 * 51


def test_the_figure_has_a_logarithmic_axis_and_no_bar_below_one(counts: pd.DataFrame) -> None:
    left, right = degree_histograms.figure(degree_histograms.first_draws(counts)).axes
    assert left.get_title(loc="left") == "Cora"
    assert left.get_yscale() == "log"
    assert [bar.get_height() for bar in left.patches] == [10] * 51
    assert len(right.patches) == 0
    assert [label.get_text() for label in left.get_xticklabels()][-1] == "≥ 50"
