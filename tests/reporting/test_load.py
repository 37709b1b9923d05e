"""The long table of a study: columns for what differs, and which runs are unfinished."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricated import RAW, finished, publish, study, table
from feddep.config.loading import validate
from feddep.reporting import load
from feddep.utils.errors import DataError


def test_options_that_differ_are_columns() -> None:
    made = study(
        finished("fedavg", 0, 0.8),
        finished("feddep,prototypes=3,clustering=dec", 0, 0.8, dataset="cora,labelled=0.1"),
        finished(
            "feddep,prototypes=15,clustering=dec", 0, 0.8, setting="feddep,rounds=9", rounds=9
        ),
        finished("feddep,clustering=dec", 0, 0.8),
    )
    assert made.options == {"rounds": "setting", "labelled": "dataset", "prototypes": "method"}
    # The entry has no number of prototypes, as its default is that of the classes.
    assert made.runs["prototypes"].tolist() == [None, 3, 15, "null"]
    assert made.runs["labelled"].tolist() == ["null", 0.1, "null", "null"]
    assert made.runs["rounds"].tolist() == [4, 4, 9, 4]
    assert made.points["method"].tolist() == ["fedavg", *["feddep,clustering=dec"] * 3]
    assert set(made.points["dataset"]) == {"cora"}
    assert set(made.points["setting"]) == {"feddep"}
    assert made.columns("setting", "dataset") == ["rounds", "labelled"]


def test_a_parameter_may_have_a_value_for_each_dataset() -> None:
    raw = {**RAW, "methods": {"feddep": {"embedding": {"cora": 128, "citeseer": 64}}}}
    runs = [
        finished(name, 0, 0.8, dataset=data)
        for name in ("feddep", "feddep,embedding=16")
        for data in ("cora", "citeseer")
    ]
    assert study(*runs, raw=raw).runs["embedding"].tolist() == [128, 64, 16, 16]


def test_rows_of_a_summary_stand_in_the_papers_order() -> None:
    runs = [finished("fedavg", seed, 0.8, before={"a": 1.0, "b": 0.5}) for seed in range(3)]
    runs += [finished(f"feddep,prototypes={c}", 0, 0.9, clients=m) for c in (7, 3) for m in (10, 5)]
    found = study(*runs, finished("global", 0, 0.95, clients=None, dataset="citeseer")).summary()
    assert found["dataset"].tolist() == ["cora"] * 5 + ["citeseer"]
    assert found["method"].tolist() == ["fedavg", *["feddep"] * 4, "global"]
    assert found["clients"].fillna(0).tolist() == [5, 5, 10, 5, 10, 0]
    assert found["prototypes"].tolist()[1:5] == [3, 3, 7, 7]
    assert found["seconds_before"].tolist() == [1.5, 0, 0, 0, 0, 0]
    assert "local_before_mean" not in found


@given(
    st.integers(1, 500).flatmap(
        lambda rounds: st.tuples(
            st.just(rounds), st.lists(st.integers(1, rounds), min_size=1, max_size=9)
        )
    )
)
def test_unfinished_runs_are_best_late(case: tuple[int, list[int]]) -> None:
    rounds, best = case
    last = range(1, rounds + 1)[-math.ceil(rounds / 20) :]  # those that begin after 95 % of them
    late = [number in last for number in best]
    found = load.tidy(table([finished("local", 0, 0.5, rounds=rounds, best_round=best)])).iloc[0]
    assert found["unfinished"] == (late.count(True) > late.count(False))
    assert found["best_round"] == pytest.approx(sum(best) / len(best))


def test_runs_of_tables_in_the_order_of_the_plan(tmp_path: Path) -> None:
    """Runs that are spelled differently may be one and the same: Global does not depend on the
    partition.
    """
    axes = {"datasets": {"cora": {}}, "partitions": {"louvain": {}, "random": {}}}
    blocks = [{**axes, "clients": [5], "methods": {"feddep": {}, "global": {}}}]
    config = publish(tmp_path, {**RAW, "studies": [{**RAW["studies"][0], "runs": blocks}]})
    made = load.load(config, "made_up")
    assert (
        made.runs["method"].tolist()
        == ["feddep"] * 3 + ["global"] * 3 + ["feddep"] * 3 + ["global"] * 3
    )
    assert made.runs["key"].nunique() == 9
    curves = load.curves(config, made.plan, made.runs)
    assert len(curves) == 12 * 4
    rounds = load.over_seeds(curves.assign(doubled=2 * curves["round"]), ["doubled"])
    assert len(rounds) == 4 * 4
    assert rounds[["doubled_mean", "doubled_low", "doubled_high"]].iloc[1].tolist() == [4, 4, 4]
    assert "12 runs" in load.provenance(made.recorded)


def test_what_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        load.load(
            validate(
                {**RAW, "output": str(tmp_path), "records": {"directory": str(tmp_path / "none")}}
            ),
            "made_up",
        )
