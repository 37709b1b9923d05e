"""The leaderboard: its table, and what the page does in a browser."""

import re
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import board
import pages
import pytest
from site_links import slug
from written import signed

from feddep.reporting.labels import dataset_title, method_title

ROOT = Path(__file__).resolve().parent.parent
READ = pages.Tables().read
TABLE = ElementTree.fromstring(board.html(READ))
HEADS = [head.text for head in TABLE.iterfind("thead/tr/th")]


def shown(cell: Element) -> str:
    return " ".join("".join(cell.itertext()).split())


ROWS = {
    (shown(row[0]), shown(row[1])): dict(zip(HEADS, row, strict=True))
    for row in TABLE.iterfind("tbody/tr")
}
"""The cells of each row by head, by method and encoder."""


def test_every_recorded_number_is_in_its_row() -> None:
    recorded = set()
    for encoder, (over_graphs, studies) in board.STUDIES.items():
        for over in READ(over_graphs).to_dict("records"):
            row = ROWS[method_title(over["method"]), encoder]
            assert float(row["gain"].get("data-order", "")) == over["mean_difference"]
            assert (shown(row["verdict"]), shown(row["graphs"])) == (
                over["verdict"],
                str(over["graphs"]),
            )
        for study in studies:
            for of in READ(study).to_dict("records"):
                name = method_title(of["method"]), encoder
                recorded.add(name)
                page = f"../results/{study}/page.md#{slug(dataset_title(of['dataset']), '-')}"
                (cell,) = (
                    c for c in ROWS[name].values() if c.find(f"a[@href='{page}']") is not None
                )
                assert float(cell.get("data-order", "")) == of["mean"]
                if of["method"] != of["reference"]:
                    assert shown(cell).endswith(f"{signed(of['mean_difference'])} {of['verdict']}")
    assert set(ROWS) == recorded


def test_levels_and_costs_are_relative_to_their_baselines() -> None:
    table = READ("field_sage").set_index(["method", "dataset"])
    for method, of in table.groupby(level="method"):
        row, of = ROWS[method_title(method), "GraphSAGE"], of.droplevel("method")
        sound = (of["unfinished"] <= 0.5) & (of["stalled"] <= 0.5)
        worst = of["worst_client"][sound] - table["worst_client"]["fedavg_finetuned"]
        assert float(row["worst client"].get("data-order", "")) == pytest.approx(
            worst.mean(), rel=1e-5
        )
        for cost in board.COSTS:
            ratio = (of[cost] / table[cost]["fedavg"]).median()
            assert float(row[cost].get("data-order", "")) == pytest.approx(ratio, rel=1e-5)


def test_a_point_is_where_the_gain_is() -> None:
    def gained(difference: float, verdict: str) -> dict[str, object]:
        return {"mean_difference": difference, "verdict": verdict}

    on = [gained(0.01, "better"), None, gained(-0.5, "undecided"), gained(0.02, "unfinished")]
    paths = {path.get("class"): path.get("d") for path in ElementTree.fromstring(board._plot(on))}
    assert paths["sure"] == "M70 2h0"
    assert paths["unsure"] == "M3 6h0"


def test_links_of_the_page_hold() -> None:
    links = re.findall(r'href="([^"]+)"', (ROOT / "docs/leaderboard.md").read_text("utf-8"))
    assert len(links) > len(ROWS)
    for link in set(links):
        file, _, section = link.partition("#")
        text = (ROOT / "docs" / file).read_text(encoding="utf-8")
        assert not section or section in [
            slug(each, "-") for each in re.findall("^#+ (.*)", text, re.M)
        ]


def test_a_graph_of_no_family_is_named() -> None:
    with pytest.raises(LookupError, match="elsewhere"):
        board.html(
            lambda name: READ(name).replace({"dataset": {r"^actor\b": "elsewhere"}}, regex=True)
        )
