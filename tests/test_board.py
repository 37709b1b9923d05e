"""The leaderboard's tables say what the tables of results say."""

import hashlib
import re
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import board
import numpy as np
import pages
import pandas as pd
import pytest
import site_links
import yaml
from written import slug

from feddep.config import variants
from feddep.reporting.labels import dataset_title, method_title
from feddep.utils.files import write_text

READ = pages.Tables().read
TABLE = ElementTree.fromstring(board.html(READ))


def shown(cell: Element) -> str:
    return "".join(cell.itertext())


HEADS = [shown(head) for head in TABLE.iterfind("thead/tr/th")]
EVERY = {
    (shown(row[0]), shown(row[1])): dict(zip(HEADS, row, strict=True))
    for row in TABLE.iterfind("tbody/tr")
}
"""The cells of each row by head, by method and encoder."""
ROWS = {name: row for name, row in EVERY.items() if shown(row["grade"]) == "recorded"}


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
            f"../results/{study}/page.md#{slug(dataset_title(of['dataset']))}",
        ): of["mean"]
        for encoder, (_, studies) in board.STUDIES.items()
        for study in studies
        for of in READ(study).to_dict("records")
        if of.get("configuration") in (None, "tuned here")
    }


def test_every_method_has_its_gain_over_graphs() -> None:
    assert {
        name: (order(row["gain"]), shown(row["verdict"]), order(row["graphs"]))
        for name, row in ROWS.items()
        if shown(row["verdict"]) != "reference"
    } == {
        (method_title(of["method"]), encoder): (of["mean_difference"], of["verdict"], of["graphs"])
        for encoder, (over_graphs, _) in board.STUDIES.items()
        for of in READ(over_graphs).query("configuration == 'tuned here'").to_dict("records")
    }


def test_gains_out_of_the_box_stand_where_they_were_searched() -> None:
    searched = READ("field_generated_pooled").query("configuration == 'out of the box'")
    found = {name: order(row["out of the box"]) for name, row in ROWS.items()}
    assert {name: gain for name, gain in found.items() if not np.isnan(gain)} == {
        (method_title(name), "its choice"): gain
        for name, gain in zip(searched["method"], searched["mean_difference"], strict=True)
    }


def test_a_submission_has_what_its_row_says(tmp_path: Path) -> None:
    """And the grade that was found for it as it is."""
    text = (board.SUBMISSIONS / "fedrep" / "row.yaml").read_text("utf-8")
    text, row = text.replace("title: FedRep", "title: FedX"), yaml.safe_load(text)
    write_text(tmp_path / "fedx" / "row.yaml", text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    for known, grade in ((digest, "judged"), ("0" * 64, "claimed")):
        grades = pd.DataFrame({"row": [known], "grade": ["judged"]})
        table = ElementTree.fromstring(
            board.html(
                lambda name, of=grades: of if name == "submissions" else READ(name), tmp_path
            )
        )
        (cells,) = (each for each in table.iterfind("tbody/tr") if shown(each[0]) == "FedX")
        found = dict(zip(HEADS, cells, strict=True))
        assert shown(found["grade"]) == grade
    cora, over = (row["verdicts"][each] for each in ("cora", "over_graphs"))
    assert order(found["gain"]) == pytest.approx(over["mean_difference"], abs=1e-6)
    assert order(found["Cora"]) == pytest.approx(row["claims"]["cora"]["test"], abs=1e-6)
    assert shown(found["verdict"]) == over["verdict"]
    assert shown(found["Cora"]).endswith(cora["verdict"])
    assert shown(found["Cora, METIS"]) == shown(found["seconds"]) == "–"
    fedavg = pd.concat(map(READ, board.STUDIES["GCN"][1])).query("method == 'fedavg'")
    by_graph = fedavg.groupby(fedavg["dataset"].map(variants.base))["bytes"].first()
    costs = [
        pd.DataFrame(of)["bytes"].mean() / by_graph[graph] for graph, of in row["runs"].items()
    ]
    assert order(found["bytes"]) == pytest.approx(np.median(costs), rel=1e-5)


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


def test_the_page_in_the_repository_has_the_columns_over_graphs() -> None:
    lines = [line.strip("|").split("|") for line in board.plain(READ).splitlines()]
    heads = ["method", "encoder", "gain", "verdict", "graphs"]
    assert lines[0] == heads
    assert [[re.sub(r"\[(.+)\]\(.+\)", r"\1", line[0]), *line[1:]] for line in lines[2:]] == [
        [shown(row[head]) for head in heads] for row in EVERY.values()
    ]


@pytest.mark.parametrize("page", site_links.SORTED)
def test_links_of_a_page_hold(page: str) -> None:
    text = site_links.written(page)
    links = set(re.findall('(?:href="|\\]\\()(?!https:)([^")]+)', text))
    assert links
    folder = (site_links.ROOT / page).parent
    for link in links:
        file, _, section = link.partition("#")
        headings = re.findall("^#+ (.*)", (folder / file).read_text("utf-8"), re.MULTILINE)
        assert section in ["", *(slug(heading) for heading in headings)]


def test_a_graph_of_no_family_is_named() -> None:
    with pytest.raises(LookupError, match="elsewhere"):
        board.html(lambda name: READ(name).replace(r"^actor\b", "elsewhere", regex=True))
