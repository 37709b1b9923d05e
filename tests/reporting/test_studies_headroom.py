"""Headroom: which run is which ingredient, and the differences by hand."""

import math

import pytest
from fabricated_studies import finished, study

from feddep.reporting.runs import FinishedRun
from feddep.reporting.studies import headroom
from feddep.utils.errors import DataError

T_95_TWO_DEGREES = 4.302652729911275
R = 10


def ingredients(clients: int = 5, dataset: str = "cora", own_rounds: int = R) -> dict[str, list[FinishedRun]]:
    """Three seeds of each; all but Global's accuracies are the same for each seed. Global: 0.89, 0.90, 0.91.

    own_rounds: the setting's, which its spelling leaves out.
    """
    few, many = R // clients, R * clients

    def of(name: str, accuracy: float, rounds: int, m: int | None = clients, spread: float = 0.0) -> list[FinishedRun]:
        setting = "feddep" if rounds == own_rounds else f"feddep,rounds={rounds}"
        given = {"dataset": dataset, "clients": m, "setting": setting, "rounds": rounds}
        return [finished(name, seed, accuracy + spread * (seed - 1), **given) for seed in range(3)]

    return {
        "global": of("global", 0.90, R, None, 0.01),
        "global_fewer": of("global", 0.87, few, None),
        "halo": of("halo", 0.86, R),
        "fedavg": of("fedavg", 0.80, R),
        "fedavg_longer": of("fedavg", 0.85, many),
        "feddep": of("feddep", 0.82, R),
    }


def flat(parts: dict[str, list[FinishedRun]]) -> list[FinishedRun]:
    return [run for runs in parts.values() for run in runs]


def test_every_difference() -> None:
    (row,) = headroom.tables(study(*flat(ingredients())))["table"].to_dict("records")
    assert (row["setting"], row["dataset"], row["clients"], row["rounds"]) == ("feddep", "cora", 5, R)
    means = {name: row[f"{name}_mean"] for name in headroom.INGREDIENTS}
    assert means == pytest.approx(
        {"global": 0.90, "global_fewer": 0.87, "halo": 0.86, "fedavg": 0.80, "fedavg_longer": 0.85, "feddep": 0.82}
    )
    assert row["global_std"] == pytest.approx(0.01)
    gaps = {name: row[f"{name}_mean"] for name in headroom.DIFFERENCES}
    expected = {"gap": 0.10, "neighbours": 0.06, "optimisation": 0.04, "steps_fedavg": 0.05, "steps_global": 0.03}
    assert gaps == pytest.approx({**expected, "feddep_gain": 0.02})
    assert gaps["neighbours"] + gaps["optimisation"] == pytest.approx(gaps["gap"])
    half = T_95_TWO_DEGREES * 0.01 / math.sqrt(3)
    assert [row["gap_low"], row["gap_high"]] == pytest.approx([0.10 - half, 0.10 + half])
    assert row["gap_seeds"] == 3
    assert math.isnan(row["neighbours_low"])  # all its differences are equal


def test_other_rounds_than_the_settings_are_those_of_most_methods() -> None:
    usual = headroom.tables(study(*flat(ingredients())))["table"]
    others = headroom.tables(study(*flat(ingredients(own_rounds=R + 1))))["table"]
    assert others["rounds"].tolist() == [R]
    assert others.equals(usual)


@pytest.mark.parametrize("missing", headroom.INGREDIENTS)
def test_what_is_missing_leaves_its_columns_empty(missing: str) -> None:
    parts = ingredients()
    del parts[missing]
    made = study(*flat(parts))
    tables = headroom.tables(made)
    (row,) = tables["table"].to_dict("records")
    empty = {name for name in headroom.INGREDIENTS if math.isnan(row[f"{name}_mean"])}
    assert empty == {missing}
    for name, (more, less, title) in headroom.DIFFERENCES.items():
        assert math.isnan(row[f"{name}_mean"]) == (missing in (more, less))
        assert (title in headroom.markdown(made, tables)) == (missing not in (more, less))
    assert len(headroom.figure(made, tables).axes) == 1


def test_cells_have_ingredients_of_their_own() -> None:
    """With M = 3, R / M is no whole number: 3 rounds are the nearest."""
    three = ingredients(3)
    three["global_fewer"] += [finished("global", 0, 0.1, clients=None, setting="feddep,rounds=4", rounds=4)]
    del three["global"]  # the same as with five clients
    runs = [*flat(ingredients(5)), *flat(three), *flat({"fedavg": ingredients(5, "citeseer")["fedavg"]})]
    table = headroom.tables(study(*runs))["table"]
    assert table[["dataset", "clients"]].values.tolist() == [["cora", 3], ["cora", 5], ["citeseer", 5]]
    assert table["global_fewer_mean"].tolist()[:2] == pytest.approx([0.87, 0.87])
    assert table["fedavg_longer_mean"].tolist()[:2] == pytest.approx([0.85, 0.85])
    assert table["fedavg_mean"].tolist() == pytest.approx([0.80] * 3)
    assert table["gap_seeds"].tolist() == [3, 3, 0]


def test_the_first_variant_of_feddep_counts() -> None:
    parts = ingredients()
    runs = [*flat(parts), *(finished("feddep,depth=1", seed, 0.1, rounds=R) for seed in range(3))]
    assert headroom.tables(study(*runs))["table"]["feddep_mean"].tolist() == pytest.approx([0.82])


def test_variants_of_a_dataset_are_cells() -> None:
    runs = [*flat(ingredients()), *flat(ingredients(dataset="cora,labelled=0.1"))]
    made = study(*runs)
    tables = headroom.tables(made)
    assert tables["table"]["dataset"].tolist() == ["cora", "cora,labelled=0.1"]
    assert "Cora, labelled=0.1, M=5" in headroom.markdown(made, tables)


def test_whole_graph_runs_alone_are_one_sentence() -> None:
    with pytest.raises(DataError, match="no run of the study made_up is on clients' subgraphs"):
        headroom.tables(study(finished("global", 0, 0.9, clients=None)))


def test_markdown_and_figure() -> None:
    made = study(*flat(ingredients()))
    tables = headroom.tables(made)
    page = headroom.markdown(made, tables)
    assert page.startswith("R = 10.\n")
    assert "0.9000 ± 0.0100" in page
    assert "+0.1000 [+0.0752, +0.1248]" in page
    drawn = headroom.figure(made, tables)
    (ax,) = drawn.axes
    points = [line.get_xdata()[0] for line in ax.get_lines() if line.get_marker() == "o"]
    assert points == pytest.approx([0.10, 0.06, 0.04, 0.05, 0.03, 0.02])
    assert len(ax.collections) == 3  # the others' differences do not vary
