"""The papers' numbers, at places that were read in the papers' own tables."""

import pytest

from feddep.reporting import published
from feddep.reporting.labels import DATASETS, METHODS


def lookup(paper: str, dataset: str, clients: int | None, method: str) -> tuple[float, float]:
    table = published.accuracy()
    table = table[(table["paper"] == paper) & (table["dataset"] == dataset) & (table["method"] == method)]
    table = table[table["clients"].isna() if clients is None else table["clients"] == clients]
    assert len(table) == 1
    return table.iloc[0]["mean"], table.iloc[0]["std"]


@pytest.mark.parametrize(
    ("place", "printed"),
    [
        (("feddep", "cora", None, "global"), (0.8955, 0.004)),
        (("feddep", "cora", 5, "fedavg"), (0.8555, 0.014)),
        (("feddep", "citeseer", 10, "feddep"), (0.8040, 0.022)),
        (("feddep", "msacademic", 3, "fedavg"), (0.6986, 0.002)),
        (("feddep", "pubmed", 3, "feddep_wo_dgen"), (0.8440, 0.001)),
        (("fedsage", "cora", 5, "fedavg"), (0.8645, 0.0050)),
        (("fedsage", "pubmed", 10, "local"), (0.7148, 0.0951)),
        (("fedsage", "msacademic", None, "global"), (0.9681, 0.0006)),
        (("fedsage", "citeseer", 10, "fedsage_plus"), (0.7392, 0.0041)),
    ],
)
def test_accuracy(place: tuple, printed: tuple[float, float]) -> None:
    assert lookup(*place) == printed


def test_main_tables_are_complete_and_have_each_number_once() -> None:
    table = published.accuracy()
    assert not table.duplicated(["paper", "dataset", "clients", "method"]).any()
    assert set(table["dataset"]) == set(DATASETS)
    assert set(table["method"]) == set(METHODS)
    sizes = table.groupby("paper").size()
    assert sizes["feddep"] == 4 * (1 + 3 * 10)  # global, and ten methods at three M
    assert sizes["fedsage"] == 4 * (1 + 3 * 4)
    assert table["mean"].between(0, 1).all()


def test_other_tables_are_kept_apart() -> None:
    assert set(published.accuracy("table3")["method"]) >= {"feddep_c3", "feddep_c20"}
    assert not set(published.accuracy()["method"]) & {"feddep_c3", "feddep_c20"}


def test_sweeps_name_their_values() -> None:
    over_c = published.sweep("prototypes", "method")
    assert set(over_c["paper"]) == {"feddep"}
    assert sorted(over_c.loc[over_c["method"] == "feddep", "value"].unique()) == [3, 5, 10, 15, 20]
    assert over_c.loc[over_c["method"] != "feddep", "value"].isna().all()
    sizes = {option: len(published.sweep(option, "setting")) for option in ("batch_size", "local_epochs", "prototypes", "fanout")}
    assert sizes == {"batch_size": 9, "local_epochs": 6, "prototypes": 0, "fanout": 0}
    assert published.sweep("local_epochs", "method").empty


def test_distances_of_features() -> None:
    table = published.feature_distances().set_index(["dataset", "clients", "neighbourhood"])
    assert table.loc[("msacademic", 10, "mended")].tolist() == [2.7136, 4.5595]
    assert len(table) == 4 * 3 * 2


def test_partitions_account_for_every_edge() -> None:
    table = published.partitions()
    assert table.groupby("paper").size().to_dict() == {"feddep": 12, "fedsage": 12}
    counted = table["clients"].astype(float) * table["mean_client_edges"] + table["missing_edges"]
    # Means are printed as whole numbers: half an edge a client may be lost.
    off = (counted - table["edges"]).abs() > table["clients"].astype(float) / 2 + 1
    assert not off.any(), table[off]


def test_the_pairs_of_figure_5() -> None:
    pairs = published.edge_ldp()
    columns = ["clients", "sampling_size_d", "min_degree_D", "epsilon", "dpsgd_sigma"]
    assert pairs[columns].values.tolist() == [[3, 5, 15, 0.4, 4.2], [5, 5, 10, 0.6, 2.1], [10, 5, 3, 1.4, 0.4]]  # Section 4.5


@pytest.mark.parametrize(
    ("place", "printed"),
    [
        (("ogbn_products", "vertical_mlp", None, float("inf")), (0.6106, 0.0008)),
        (("reddit", "vertical_gcn", "gru", float("inf")), (0.9437, 0.0013)),
        (("finance", "gap", None, 32.0), (0.6754, 0.0441)),
        (("ogbn_products", "vesper_gin", "gru", 4.0), (0.6955, 0.0061)),
        (("reddit", "vesper_gcn", "concat", 16.0), (0.9211, 0.0020)),
    ],
)
def test_vesper(place: tuple[str, str, str | None, float], printed: tuple[float, float]) -> None:
    table = published.vesper()
    assert not table.duplicated(["dataset", "method", "decoder", "epsilon"]).any()
    dataset, method, decoder, epsilon = place
    rows = table[(table["dataset"] == dataset) & (table["method"] == method) & (table["epsilon"] == epsilon)]
    (row,) = (line for line in rows.to_dict("records") if line["decoder"] == decoder or (not decoder and len(rows) == 1))
    assert (row["mean"], row["std"]) == pytest.approx(printed)
