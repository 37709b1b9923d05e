"""Undertrained runs: which they are, and that every table that shows accuracy says so."""

import math

import pandas as pd
import pytest
from fabricated import Results
from fabricated_studies import finished, study
from hypothesis import given
from hypothesis import strategies as st

from feddep.reporting import accuracy, main_table, runs, studies
from feddep.reporting.results import collect
from feddep.reporting.runs import FinishedRun
from feddep.reporting.undertrained import MARK, is_undertrained, mark, note


def last_rounds(rounds: int) -> list[int]:
    """The rounds that begin after 95 % of them."""
    return list(range(1, rounds + 1))[-math.ceil(rounds / 20) :]


@given(st.integers(1, 500).flatmap(lambda rounds: st.tuples(st.just(rounds), st.integers(1, rounds))))
def test_one_model(case: tuple[int, int]) -> None:
    rounds, best = case
    assert is_undertrained(best, rounds) == (best in last_rounds(rounds))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=9))
def test_several_models_by_majority(best: list[int]) -> None:
    late = [number in last_rounds(50) for number in best]
    assert is_undertrained(best, 50) == (late.count(True) > late.count(False))


@pytest.mark.parametrize(("share", "text"), [(None, ""), (0.0, ""), (0.5, ""), (2 / 3, f" {MARK}"), (1.0, f" {MARK}")])
def test_the_mark_is_of_a_majority(share: float | None, text: str) -> None:
    assert mark(share) == text
    assert bool(note(f"0.8{text}")) == bool(text)


def late(one: FinishedRun, rounds: int = 4) -> FinishedRun:
    """The run, best in its last round."""
    one.result["best_round"] = rounds
    return one


def test_the_share_over_seeds(results: Results) -> None:
    loaded = runs.load(results.config)
    for one in loaded:
        if (one.run.method, one.run.clients) == ("fedavg", 5) and one.run.seed != 1:
            late(one)
    summary = accuracy.summarise(runs.table(loaded))
    shares = {(row.method, row.clients): row.undertrained for row in summary.itertuples()}
    assert shares.pop(("fedavg", 5)) == pytest.approx(2 / 3)
    assert set(shares.values()) == {0.0}


def test_the_main_table_is_marked(results: Results) -> None:
    plain = collect(results.config)
    summary = plain.accuracy.copy()
    summary.loc[(summary["method"] == "local") & (summary["clients"] == 5), "undertrained"] = 2 / 3
    summary.loc[summary["method"] == "global", "undertrained"] = 1 / 3
    tables = main_table.main_tables(summary, plain.comparisons)
    texts = [main_table.markdown(tables), main_table.terminal(tables, [3]), main_table.latex(tables)]
    marks = [MARK, MARK, r"\ddagger"]
    for text, sign in zip(texts, marks, strict=True):
        assert {line.count(sign) for line in text.splitlines() if "Local" in line} <= {0, 1}
        assert not any(sign in line for line in text.splitlines() if "Global" in line and "0.89" in line)
    assert texts[0].count(MARK) == 2 + 1  # both choices of the round, and the note
    assert "0.5100 ± 0.0100 \\* ‡" in texts[0]
    assert texts[1].count(MARK) == 1 + 1
    assert r"$0.5100{\pm}0.0100^{*\ddagger}$" in texts[2]
    assert r"$0.4900{\pm}0.0100^{\ddagger}$" in texts[2]
    assert MARK not in main_table.markdown(plain.main_tables) + plain.printed()


def made(kind: str, *those: FinishedRun) -> tuple[pd.DataFrame, str]:
    """The main table of a study, and its page."""
    one = study(*those)
    module = studies.load("made_up", kind)
    tables = module.tables(one)
    return tables["table"], module.markdown(one, tables)


def test_a_sweep_and_curves_are_marked() -> None:
    those = [finished("fedavg", 0, 0.8), late(finished("feddep", 0, 0.7)), late(finished("feddep", 1, 0.7))]
    for kind in ("sweep", "curves"):
        table, page = made(kind, *those)
        assert table["undertrained"].tolist() == [0.0, 1.0]
        assert [MARK in line for line in page.splitlines() if "Fed" in line] == [False, True]


def test_a_pair_counts_both_runs() -> None:
    those = [finished("fedavg", seed, 0.8 + seed / 100) for seed in range(4)]
    those += [late(finished("feddep", seed, 0.8 + seed / 50)) for seed in range(3)]
    table, page = made("paired", *those)
    assert table["undertrained"].tolist() == [0.5]  # FedAvg's fourth seed is in no pair
    assert MARK not in page
    late(those[2])
    table, page = made("paired", *those)
    assert table["undertrained"].tolist() == pytest.approx([4 / 6])
    assert MARK in page


def test_levels_and_differences_of_headroom() -> None:
    those = [late(finished("global", 0, 0.9, clients=None)), finished("fedavg", 0, 0.8), late(finished("halo", 0, 0.8))]
    table, page = made("headroom", *those)
    row = table.iloc[0]
    assert [row[f"{name}_undertrained"] for name in ("global", "fedavg", "halo")] == [1.0, 0.0, 1.0]
    assert [row[f"{name}_undertrained"] for name in ("gap", "neighbours", "optimisation")] == [0.5, 0.5, 1.0]
    assert math.isnan(row["feddep_undertrained"])
    assert page.count(MARK) == 3


def test_a_reading_of_a_grid() -> None:
    # Seed 1 is of one reading alone, and so of no cell.
    those = [late(finished("fedavg", 0, 0.8)), finished("feddep", 0, 0.8), late(finished("feddep", 1, 0.8))]
    table, page = made("grid", *those)
    assert dict(zip(table["method"], table["undertrained"], strict=True)) == {"fedavg": 1.0, "feddep": 0.0}
    assert [MARK in line for line in page.splitlines() if "FedAvg" in line] == [True]
