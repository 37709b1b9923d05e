"""Recovery: headroom, gains and shares by hand, which setting is taken, and what the figure shows."""

import math

import pytest
from fabricated_studies import finished, study

from feddep.reporting.runs import FinishedRun
from feddep.reporting.studies import recovery
from feddep.reporting.study_data import Study
from feddep.reporting.undertrained import MARK
from feddep.utils.errors import DataError

CLOSED = "feddep,encoder=closed"
T_95_TWO_DEGREES = 4.302652729911275
OWN = 0.1
"""Own accuracies are less than global ones by this."""


def runs(method: str, best: float, *, spread: float = 0.0, score: float = 0.5, own_score: float = 0.5, **where):
    """Three seeds, whose accuracies are ``spread`` apart."""
    return [
        finished(
            method,
            seed,
            best + spread * (seed - 1),
            **where,
            **{"own": best + spread * (seed - 1) - OWN, "global_validation": score, "validation": own_score},
        )
        for seed in range(3)
    ]


def cell(**where) -> list[FinishedRun]:
    """Headroom 0.06, of which FedDEP wins a half back and FedGCN loses 0.03."""
    return [
        *runs("fedavg", 0.80, **where),
        *runs("halo", 0.86, spread=0.01, **where),
        *runs("feddep", 0.83, spread=0.001, **where),
        *runs("fedgcn", 0.77, spread=0.001, **where),
    ]


def row(tables: dict, name: str, **where) -> dict:
    table = tables[name]
    for column, value in where.items():
        table = table[table[column] == value]
    (found,) = table.to_dict("records")
    return found


def test_headroom_gain_and_share() -> None:
    tables = recovery.tables(study(*cell()))
    for evaluation, less in (("global", 0.0), ("own", OWN)):
        cells = row(tables, "cells", evaluation=evaluation)
        assert (cells["dataset"], cells["clients"], cells["headroom_seeds"]) == ("cora", 5, 3)
        assert [cells["fedavg_mean"], cells["halo_mean"], cells["halo_std"]] == pytest.approx([0.80 - less, 0.86 - less, 0.01])
        half = T_95_TWO_DEGREES * 0.01 / math.sqrt(3)
        found = [cells[f"headroom_{part}"] for part in ("mean", "low", "high")]
        assert found == pytest.approx([0.06, 0.06 - half, 0.06 + half])
        feddep = row(tables, "table", evaluation=evaluation, method="feddep")
        assert [feddep["mean"], feddep["gain"], feddep["share"]] == pytest.approx([0.83 - less, 0.03, 0.5])
        assert (feddep["assumes"], feddep["seeds"]) == ("prototypes shared", 3)
        # Four equal tests, two methods and two evaluations.
        assert feddep["p_holm"] == pytest.approx(4 * feddep["p"])
        assert row(tables, "table", evaluation=evaluation, method="fedgcn")["share"] == pytest.approx(-0.5)


def test_the_summary_is_over_cells_with_headroom() -> None:
    little = [*runs("fedavg", 0.80, clients=10), *runs("halo", 0.819, clients=10), *runs("feddep", 0.7, spread=0.001, clients=10)]
    more = [*runs("fedavg", 0.80, clients=3), *runs("halo", 0.90, clients=3), *runs("feddep", 0.81, spread=0.001, clients=3)]
    made = study(*cell(), *little, *more)
    tables = recovery.tables(made)
    assert math.isnan(row(tables, "table", evaluation="own", method="feddep", clients=10)["share"])
    feddep, fedgcn = (row(tables, "summary", evaluation="own", method=name) for name in ("feddep", "fedgcn"))
    assert (feddep["cells"], feddep["significant"], fedgcn["cells"], fedgcn["significant"]) == (2, 2, 1, 0)
    assert [feddep[f"{which}_share"] for which in ("mean", "least", "largest")] == pytest.approx([0.3, 0.1, 0.5])
    assert [feddep["largest_loss"], fedgcn["largest_loss"]] == pytest.approx([-0.1, -0.03])
    page = recovery.markdown(made, tables)
    assert [line for line in page.splitlines() if line.startswith("##")][:3] == [
        *("## Global graph", "### Missing neighbours", "### Gain over FedAvg, and share"),
    ]
    lines = [[part.strip() for part in line.split("|")[1:-1]] for line in page.splitlines()]
    assert ["FedDEP", "prototypes shared", "2", "0.30", "0.10", "0.50", "2", "-0.1000"] in lines
    assert ["Cora, M=5", "+0.0300 \\* (0.50)", "-0.0300 \\* (-0.50)"] in lines
    assert ["Cora, M=10", "-0.1000 \\*", ""] in lines


def two_encoders() -> Study:
    """Of FedAvg validation nodes choose the other encoder for each evaluation; test accuracies would choose otherwise."""
    usual = [*runs("fedavg", 0.80, score=0.7, own_score=0.6), *runs("halo", 0.86)]
    return study(*usual, *runs("fedavg", 0.75, setting=CLOSED, score=0.6, own_score=0.7), *runs("feddep", 0.81, setting=CLOSED))


def test_validation_nodes_choose_the_encoder_of_each_evaluation() -> None:
    made = two_encoders()
    tables = recovery.tables(made)
    found = {line["evaluation"]: line for line in tables["cells"].to_dict("records")}
    assert {name: line["fedavg_setting"] for name, line in found.items()} == {"global": "feddep", "own": CLOSED}
    assert [line["headroom_mean"] for line in found.values()] == pytest.approx([0.06, 0.11])
    assert row(tables, "table", evaluation="global")["gain"] == pytest.approx(0.01)  # paired with the other encoder
    page = recovery.markdown(made, tables)
    assert "| 0.8000 ± 0.0000 sage " in page
    assert "+0.0100 (0.17) closed" in page


def test_the_whole_graph_stands_beside_every_number_of_clients() -> None:
    whole = [finished("global", seed, 0.9, clients=None) for seed in range(3)]  # without accuracies of owners
    table = recovery.tables(study(*cell(clients=3), *cell(clients=10), *whole))["table"]
    gains = table[table["method"] == "global"]
    assert gains["clients"].tolist() == [3, 10, 3, 10]
    assert gains["gain"].tolist() == pytest.approx([0.1, 0.1, 0.1 + OWN, 0.1 + OWN])


def test_undertrained_runs_are_marked() -> None:
    late = runs("feddep", 0.83)
    for run in late:
        run.result["best_round"] = 4
    made = study(*runs("fedavg", 0.80), *runs("halo", 0.86), *late, *runs("fedgcn", 0.81))
    tables = recovery.tables(made)
    assert row(tables, "table", evaluation="own", method="feddep")["undertrained"] == 0.5
    assert MARK not in recovery.markdown(made, tables)
    for run in made.finished[:2]:
        run.result["best_round"] = 4
    made = study(*made.finished)
    tables = recovery.tables(made)
    assert row(tables, "cells", evaluation="own")["fedavg_undertrained"] == pytest.approx(2 / 3)
    assert recovery.markdown(made, tables).count(MARK) == 2 * 2  # FedAvg, and FedDEP's gain, in both evaluations


@pytest.mark.parametrize("measure", ["own", "global_validation"])
def test_a_run_that_has_not_measured_enough_is_named(measure: str) -> None:
    those = cell()
    del those[4].result[measure]
    with pytest.raises(DataError, match=rf"needs {measure} of every run, and the run feddep/cora/m5/halo/seed1 has not measured"):
        recovery.tables(study(*those))


@pytest.mark.parametrize("missing", ["fedavg", "halo"])
def test_no_cell_with_both_bounds_is_one_sentence(missing: str) -> None:
    with pytest.raises(DataError, match="seed with both fedavg and halo; a recovery study needs them"):
        recovery.tables(study(*(run for run in cell() if run.run.method != missing)))


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_the_figure_maps_headroom_and_shares() -> None:
    made = study(*cell(), *cell(dataset="cora,partition=random,labelled=0.05", clients=10), *runs("fedavg", 0.5, clients=10))
    tables = recovery.tables(made)
    headroom, of_owners, shares, _ = recovery.figure(made, tables).axes
    assert (headroom.get_title(), of_owners.get_title()) == ("Cora\nglobal graph", "Cora\nown subgraphs")
    assert [label.get_text() for label in headroom.get_yticklabels()] == ["louvain", "random, 5 % labelled"]
    assert [label.get_text() for label in headroom.get_xticklabels()] == ["5", "10"]
    assert texts(headroom) == ["6.0", "6.0"]  # two of four cells: one has no halo, one no run
    assert [label.get_text() for label in shares.get_xticklabels()] == ["Cora, louvain, M=5", "Cora, random, 5 % labelled, M=10"]
    assert [label.get_text() for label in shares.get_yticklabels()] == ["FedDEP", "FedGCN"]
    assert texts(shares) == ["0.50", "0.50", "-0.50", "-0.50"]
    assert "Cora, partition=random, labelled=0.05, M=10" in recovery.markdown(made, tables)


def test_many_cells_have_a_map_for_each_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "_MOST_CELLS", 1)
    made = study(*cell(), *cell(clients=10))
    axes = recovery.figure(made, recovery.tables(made)).axes
    assert [texts(ax) for ax in axes] == [["6.0", "6.0"]] * 2 + [["0.50", "0.50"]] * 2 + [["-0.50", "-0.50"]] * 2


def test_without_methods_or_headroom_the_map_is_all() -> None:
    for those in ([*runs("fedavg", 0.8), *runs("halo", 0.9)], [*runs("fedavg", 0.8), *runs("halo", 0.7), *runs("feddep", 0.8)]):
        made = study(*those)
        tables = recovery.tables(made)
        assert len(recovery.figure(made, tables).axes) == 2
        assert "### Missing neighbours" in recovery.markdown(made, tables)
