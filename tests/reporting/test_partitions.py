"""Partitions over seeds, beside the papers'."""

from pathlib import Path

import pytest
from fabricated import Results

from feddep.reporting import partitions
from feddep.utils.errors import DataError
from feddep.utils.files import read_result, write_result


def test_mean_over_seeds_beside_the_papers(results: Results) -> None:
    table = partitions.summarise(partitions.load(results.config))
    assert list(table.columns) == partitions.COLUMNS
    assert table["clients"].tolist() == [5, 10]
    line = table.iloc[0]
    assert line[["nodes", "edges", "features", "classes", "seeds"]].tolist() == [2708, 5278, 1433, 7, 3]
    assert line["missing_edges"] == pytest.approx(510)  # 500, 510, 520
    assert line["missing_edges_std"] == pytest.approx(10)
    assert line["mean_client_nodes"] == pytest.approx(541.6)
    assert line["mean_client_edges"] == pytest.approx((5278 - 510) / 5)
    assert line["cut_nodes"] == 3
    assert line[["feddep_edges", "feddep_missing_edges", "fedsage_edges", "fedsage_missing_edges"]].tolist() == [
        5278,
        552,
        5429,
        589,
    ]


def test_a_graph_that_no_paper_has(tmp_path: Path) -> None:
    results = Results(tmp_path, datasets={"tiny": {"features": "raw", "synthetic": {}}}, clients=(3,), seeds=(2,)).write()
    (line,) = partitions.summarise(partitions.load(results.config)).to_dict("records")
    assert (line["dataset"], line["missing_edges"]) == ("tiny", 320)
    assert line["missing_edges_std"] != line["missing_edges_std"]  # NaN: one seed
    assert line["feddep_missing_edges"] != line["feddep_missing_edges"]


@pytest.mark.parametrize("name", ["graphs/cora.json", "partitions/cora/m10/seed2.json"])
def test_missing_statistics(results: Results, name: str) -> None:
    Path(results.config["output"], name).unlink()
    with pytest.raises(DataError, match=f"{name} does not exist"):
        partitions.load(results.config)


def test_statistics_that_lack_a_part(results: Results) -> None:
    path = Path(results.config["output"], "partitions/cora/m5/seed0.json")
    content = read_result(path)
    del content["statistics"]["missing_edges"]
    write_result(path, content)
    with pytest.raises(DataError, match=r"m5/seed0.json holds no such statistics \(missing_edges: Field required\)"):
        partitions.load(results.config)
