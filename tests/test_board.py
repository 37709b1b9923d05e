"""The leaderboard's table says what the tables of results say."""

import re
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import board
import pages
import pytest
from site_links import slug

from feddep.reporting.labels import dataset_title, method_title

DOCS = Path(__file__).resolve().parent.parent / "docs"
READ = pages.Tables().read
TABLE = ElementTree.fromstring(board.html(READ))


def shown(cell: Element) -> str:
    return "".join(cell.itertext())


HEADS = [shown(head) for head in TABLE.iterfind("thead/tr/th")]
ROWS = {
    (shown(row[0]), shown(row[1])): dict(zip(HEADS, row, strict=True))
    for row in TABLE.iterfind("tbody/tr")
}
"""The cells of each row by head, by method and encoder."""


def order(cell: Element) -> float:
    return float(cell.get("data-order", "nan"))


def test_every_recorded_mean_leads_to_its_study() -> None:
    found = {
        (*name, link.get("href")): order(cell)
        for name, row in ROWS.items()
        for cell in row.values()
        if cell.tag == "td" and (link := cell.find("a")) is not None
    }
    assert found == {
        (
            *(method_title(of["method"]), encoder),
            f"../results/{study}/page.md#{slug(dataset_title(of['dataset']), '-')}",
        ): of["mean"]
        for encoder, (_, studies) in board.STUDIES.items()
        for study in studies
        for of in READ(study).to_dict("records")
    }


def test_every_method_has_its_gain_over_graphs() -> None:
    assert {
        name: (order(row["gain"]), shown(row["verdict"]), order(row["graphs"]))
        for name, row in ROWS.items()
        if shown(row["verdict"]) != "reference"
    } == {
        (method_title(of["method"]), encoder): (of["mean_difference"], of["verdict"], of["graphs"])
        for encoder, (over_graphs, _) in board.STUDIES.items()
        for of in READ(over_graphs).to_dict("records")
    }


def test_levels_and_costs_are_relative_to_their_baselines() -> None:
    tables = dict(list(READ("field_sage").set_index("dataset").groupby("method")))
    of, row = tables["feddc"], ROWS["FedDC", "GraphSAGE"]
    assert (of[["unfinished", "stalled"]] <= 0.5).all(axis=None)
    worst = of["worst_client"] - tables["fedavg_finetuned"]["worst_client"]
    costs = (of[board.COSTS] / tables["fedavg"][board.COSTS]).median()
    assert order(row["worst client"]) == pytest.approx(worst.mean(), rel=1e-5)
    assert [order(row[cost]) for cost in board.COSTS] == pytest.approx(costs.tolist(), rel=1e-5)


def test_a_point_is_where_the_gain_is() -> None:
    gains = [(0.01, "better"), (-0.5, "undecided"), (0.02, "unfinished")]
    on = [{"mean_difference": gain, "verdict": verdict} for gain, verdict in gains]
    paths = [path.get("d") for path in ElementTree.fromstring(board._plot([None, *on]))]
    assert paths[1:] == ["M3 6h0", "M70 4h0"]


def test_links_of_the_page_hold() -> None:
    for link in set(re.findall('href="([^"]+)"', (DOCS / "leaderboard.md").read_text("utf-8"))):
        file, _, section = link.partition("#")
        headings = re.findall("^#+ (.*)", (DOCS / file).read_text("utf-8"), re.MULTILINE)
        assert section in ["", *(slug(heading, "-") for heading in headings)]


def test_a_graph_of_no_family_is_named() -> None:
    with pytest.raises(LookupError, match="elsewhere"):
        board.html(lambda name: READ(name).replace(r"^actor\b", "elsewhere", regex=True))
