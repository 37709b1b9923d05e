"""Curves: time counts from the first thing that is made, and bands hold all seeds."""

import numpy as np
import pytest
from fabricated_studies import finished, study

from feddep.reporting.studies import curves
from feddep.reporting.study_data import Study

SECONDS = {0: [1.0, 2.0, 3.0, 4.0], 1: [2.0, 4.0, 6.0, 8.0]}


@pytest.fixture
def two() -> Study:
    """FedDEP, which prepares for 10 and 20 seconds, two seeds; Global, one seed, without any preparation."""
    runs = [
        finished(
            "feddep",
            seed,
            0.8 + 0.04 * seed,
            seconds=9.0 + seed,
            seconds_before={"pretrain": 4.0, "generator": 6.0 + 10.0 * seed},
            seconds_by_round=SECONDS[seed],
        )
        for seed in (0, 1)
    ]
    return study(*runs, finished("global", 0, 0.9, clients=None, seconds=1.0, seconds_by_round=[0.5] * 4))


def test_table(two: Study) -> None:
    table = curves.tables(two)["table"].set_index("method")
    row = table.loc["feddep"]
    assert row[["mean", "last_mean", "seconds", "seconds_before", "total_seconds"]].tolist() == pytest.approx(
        [0.82, 0.80, 9.5, 15.0, 24.5]
    )
    assert table.loc["global", "total_seconds"] == 1.0


def test_rounds_are_means_with_their_range(two: Study) -> None:
    rounds = curves.tables(two)["rounds"]
    third = rounds[(rounds["method"] == "feddep") & (rounds["round"] == 3)].iloc[0]
    assert third[["test_mean", "test_low", "test_high"]].tolist() == pytest.approx([0.82, 0.80, 0.84])
    assert third[["seconds_mean", "seconds_low", "seconds_high"]].tolist() == pytest.approx([(13 + 26) / 2, 13, 26])
    assert third["loss_mean"] == pytest.approx(1 / 3)
    assert len(rounds) == 8


def test_figure(two: Study) -> None:
    drawn = curves.figure(two, curves.tables(two))
    test, loss, seconds = drawn.axes
    assert test.get_title(loc="left") == "Cora, M=5"
    assert [ax.get_ylabel() for ax in (test, loss, seconds)] == ["test accuracy", "training loss", "run time in seconds"]
    whole, feddep = seconds.get_lines()
    assert whole.get_ydata() == pytest.approx([0.5] * 4)
    assert feddep.get_ydata() == pytest.approx(15 + 1.5 * np.arange(1, 5))
    band = test.collections[1].get_paths()[0].vertices
    assert [band[band[:, 0] == 3][:, 1].min(), band[band[:, 0] == 3][:, 1].max()] == pytest.approx([0.80, 0.84])


def test_a_run_that_was_not_timed_round_by_round_is_drawn_without_time() -> None:
    made = study(finished("fedavg", 0, 0.8))
    rounds = curves.tables(made)["rounds"]
    assert rounds["seconds_mean"].isna().all()
    assert rounds["test_mean"].notna().all()
    assert len(curves.figure(made, curves.tables(made)).axes) == 3


def test_markdown(two: Study) -> None:
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in curves.markdown(two, curves.tables(two)).splitlines()]
    assert lines[0] == ["dataset", "M", "method", "best round on validation", "last round", "seconds", "seconds before"]
    assert lines[2] == ["Cora", "", "Global", "0.9000", "0.8800", "1.0", "0.0"]
    assert lines[3] == ["Cora", "5", "FedDEP", "0.8200 ± 0.0283", "0.8000 ± 0.0283", "9.5", "15.0"]


def test_variants_have_colours_of_their_own() -> None:
    names = ["fedavg", *(f"feddep,prototypes={c}" for c in range(1, 9))]
    styles = curves.drawing.line_styles(names)
    assert len({styles[name] for name in names}) == len(names)
