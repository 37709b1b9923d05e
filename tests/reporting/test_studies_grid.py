"""Grids: ranks by hand, main effects by hand, and that test accuracy has no say."""

import math

import numpy as np
import pytest
from fabricated_studies import finished, study

from feddep.reporting.studies import grid
from feddep.reporting.study_data import Study
from feddep.utils.errors import DataError

PLACES = [("cora", 5), ("cora", 10), ("citeseer", 5)]
# Validation accuracy at each place: CiteSeer is easy. The means over readings are 0.50, 0.60, 0.90.
SCORES = {
    "feddep": (0.49, 0.58, 0.90),
    "feddep,depth=1": (0.52, 0.61, 0.91),
    "feddep,prototypes=3": (0.48, 0.60, 0.88),
    "feddep,prototypes=3,depth=1": (0.51, 0.61, 0.91),
}


def readings(best: float = 0.5, scores: dict[str, tuple[float, ...]] = SCORES) -> Study:
    return study(
        *(
            finished(name, 0, best * score, dataset=dataset, clients=clients, validation=score)
            for name, of in scores.items()
            for (dataset, clients), score in zip(PLACES, of, strict=False)
        )
    )


def test_table() -> None:
    table = grid.tables(readings())["table"]
    # Differences from the cells' means: (-1, -2, 0), (2, 1, 1), (-2, 0, -2), (1, 1, 1) hundredths.
    assert table["method"].tolist() == ["feddep,depth=1", "feddep,prototypes=3,depth=1", "feddep", "feddep,prototypes=3"]
    assert table["rank"].tolist() == [1, 2, 3, 4]
    assert table["difference"].tolist() == pytest.approx([0.04 / 3, 0.01, -0.01, -0.04 / 3])
    assert table["se"].tolist() == pytest.approx([0.01 / 3, 0.0, 0.01 / math.sqrt(3), 0.02 / 3])
    assert table["cells"].tolist() == [3] * 4
    assert table["depth"].tolist() == [1, 1, 2, 2]
    assert table["prototypes"].tolist() == ["null", 3, "null", 3]
    assert table["validation_mean"].iloc[0] == pytest.approx((0.52 + 0.61 + 0.91) / 3)
    assert list(table.columns[-3:]) == ["cora_m5", "cora_m10", "citeseer_m5"]
    assert table.iloc[0, -3:].tolist() == pytest.approx([0.52, 0.61, 0.91])


def test_main_effects() -> None:
    effects = grid.tables(readings())["main_effects"]
    assert effects[["option", "value", "readings", "cells"]].values.tolist() == [
        ["depth", 1, 2, 3],
        ["depth", 2, 2, 3],
        ["prototypes", "null", 2, 3],
        ["prototypes", 3, 2, 3],
    ]
    # Depth 1 in each cell: (2 + 1) / 2, (1 + 1) / 2, (1 + 1) / 2 hundredths; C = null: 1/2, -1/2, 1/2.
    assert effects["difference"].tolist() == pytest.approx([0.07 / 6, -0.07 / 6, 0.01 / 6, -0.01 / 6])
    assert effects["se"].tolist() == pytest.approx([0.01 / 6, 0.01 / 6, 0.01 / 3, 0.01 / 3])


@pytest.mark.parametrize("best", [0.0, -0.7, 1.0])
def test_test_accuracy_has_no_say(best: float) -> None:
    made, usual = readings(best), readings()
    tables, usual_tables = grid.tables(made), grid.tables(usual)
    assert all(tables[name].equals(usual_tables[name]) for name in tables)
    assert grid.markdown(made, tables) == grid.markdown(usual, usual_tables)


def test_only_cells_that_all_readings_have_count() -> None:
    """The second reading was run at the first two places only: there it is the better one."""
    made = readings(scores={"feddep": (0.5, 0.5, 0.99), "feddep,depth=1": (0.6, 0.7)})
    table = grid.tables(made)["table"]
    assert table["method"].tolist() == ["feddep,depth=1", "feddep"]
    assert table["cells"].tolist() == [2, 2]
    assert table["difference"].tolist() == pytest.approx([0.075, -0.075])
    assert "citeseer_m5" not in table


def test_readings_without_a_common_cell() -> None:
    made = study(finished("feddep", 0, 0.5), finished("feddep,depth=1", 1, 0.5))
    with pytest.raises(DataError, match="have no dataset, number of clients and seed in common"):
        grid.tables(made)


def test_one_cell_has_no_standard_error() -> None:
    made = study(finished("feddep", 0, 0.5), finished("feddep,depth=1", 0, 0.5, validation=0.6))
    tables = grid.tables(made)
    assert tables["table"]["se"].isna().all()
    assert "| +0.0500    |" in grid.markdown(made, tables)
    assert np.isfinite(grid.figure(made, tables).axes[0].get_ylim()).all()


def test_a_value_that_differs_by_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    from fabricated_studies import RAW

    monkeypatch.setitem(RAW, "methods", {"feddep": {"embedding": {"cora": 8, "citeseer": 4}}})
    tables = grid.tables(readings(scores={"feddep": (0.5, 0.5, 0.6), "feddep,embedding=2": (0.5, 0.5, 0.5)}))
    assert tables["table"]["embedding"].tolist() == ["8/4", 2]
    assert tables["main_effects"]["value"].tolist() == ["8/4", 2]


def test_methods_are_readings_too() -> None:
    made = readings(scores={"feddep": (0.5, 0.5, 0.6), "fedavg": (0.5, 0.5, 0.5)})
    tables = grid.tables(made)
    assert tables["main_effects"].empty
    assert "Values of each option" not in grid.markdown(made, tables)
    labels = [label.get_text() for label in grid.figure(made, tables).axes[1].get_yticklabels()]
    assert labels == ["FedDEP", "FedAvg"]


def test_figure_joins_what_always_comes_together() -> None:
    scores = {"feddep": (0.5,), "feddep,depth=1,prototypes=3": (0.6,), "feddep,slots=all": (0.7,)}
    made = readings(scores=scores)
    above, below = grid.figure(made, grid.tables(made)).axes
    assert above.get_lines()[1].get_ydata() == pytest.approx([0.1, 0.0, -0.1])
    labels = [label.get_text() for label in below.get_yticklabels()]
    assert labels == ["depth=1\nprototypes=3", "depth=2\nprototypes=null", "slots=all", "slots=generated"]
    assert [list(line.get_xdata()) for line in below.get_lines()] == [[1], [0, 2], [0], [1, 2]]
    places = [line.get_ydata()[0] for line in below.get_lines()]
    assert places == [1.0, 3.0, 4.5, 5.5]
