"""The papers' numbers, at places that were read in the papers' own tables."""

import math

import pytest
from fabricated import row

from feddep.reporting import published


def test_sweeps_name_their_values() -> None:
    over_c = published.sweep("prototypes", "method")
    assert sorted(over_c.loc[over_c["method"] == "feddep", "value"].unique()) == [3, 5, 10, 15, 20]
    assert over_c.loc[over_c["method"] != "feddep", "value"].isna().all()
    sizes = {
        option: len(published.sweep(option, "setting"))
        for option in ("batch_size", "local_epochs", "prototypes", "fanout")
    }
    assert sizes == {"batch_size": 9, "local_epochs": 6, "prototypes": 0, "fanout": 0}
    assert published.sweep("local_epochs", "method").empty


def test_numbers_of_figures_and_other_papers() -> None:
    assert published.edge_ldp()["dpsgd_sigma"].tolist() == [4.2, 2.1, 0.4]  # FedDEP, Section 4.5
    distance = row(
        published.feature_distances(), dataset="msacademic", clients=10, neighbourhood="mended"
    )
    assert (distance["mean"], distance["std"]) == (2.7136, 4.5595)
    found = row(
        published.vesper(), dataset="reddit", method="vertical_gcn", decoder="gru", epsilon=math.inf
    )
    assert (found["mean"], found["std"]) == pytest.approx((0.9437, 0.0013))
    assert row(published.vesper(), dataset="finance", method="gap", epsilon=32.0)[
        "mean"
    ] == pytest.approx(0.6754)
