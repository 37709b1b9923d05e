"""The papers' numbers, at places that were read in the papers' own tables."""

import math

import pytest
from fabricated import row

from feddep.reporting import published
from feddep.reporting.labels import DATASETS, METHODS


def test_main_tables_are_complete_and_have_each_number_once() -> None:
    table = published.accuracy()
    assert not table.duplicated(["paper", "dataset", "clients", "method"]).any()
    assert set(table["dataset"]) == set(DATASETS)
    assert set(table["method"]) == set(METHODS)
    # Global, and ten or four methods at three M.
    assert table.groupby("paper").size().to_dict() == {"feddep": 4 * (1 + 3 * 10), "fedsage": 4 * (1 + 3 * 4)}


def test_sweeps_name_their_values() -> None:
    over_c = published.sweep("prototypes", "method")
    assert sorted(over_c.loc[over_c["method"] == "feddep", "value"].unique()) == [3, 5, 10, 15, 20]
    assert over_c.loc[over_c["method"] != "feddep", "value"].isna().all()
    sizes = {option: len(published.sweep(option, "setting")) for option in ("batch_size", "local_epochs", "prototypes", "fanout")}
    assert sizes == {"batch_size": 9, "local_epochs": 6, "prototypes": 0, "fanout": 0}
    assert published.sweep("local_epochs", "method").empty


def test_numbers_of_figures_and_other_papers() -> None:
    columns = ["clients", "sampling_size_d", "min_degree_D", "epsilon", "dpsgd_sigma"]
    pairs = published.edge_ldp()[columns].values.tolist()  # FedDEP, Section 4.5
    assert pairs == [[3, 5, 15, 0.4, 4.2], [5, 5, 10, 0.6, 2.1], [10, 5, 3, 1.4, 0.4]]
    distance = row(published.feature_distances(), dataset="msacademic", clients=10, neighbourhood="mended")
    assert (distance["mean"], distance["std"]) == (2.7136, 4.5595)
    found = row(published.vesper(), dataset="reddit", method="vertical_gcn", decoder="gru", epsilon=math.inf)
    assert (found["mean"], found["std"]) == pytest.approx((0.9437, 0.0013))
    assert row(published.vesper(), dataset="finance", method="gap", epsilon=32.0)["mean"] == pytest.approx(0.6754)
