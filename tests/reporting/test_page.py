"""The report: complete, self-contained, and well-formed."""

import dataclasses
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from fabricated import Results

from feddep.reporting import files, overview, page
from feddep.reporting.results import collect
from feddep.utils.errors import DataError

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Checker(HTMLParser):
    """Follows the tags; collects ids, texts, and everything that would be loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attributes) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.handle_attributes(attributes)

    def handle_startendtag(self, tag, attributes) -> None:
        self.handle_attributes(attributes)

    def handle_attributes(self, attributes) -> None:
        for name, value in attributes:
            if name == "id":
                self.ids[value] += 1
            if name in ("src", "href", "xlink:href", "srcset", "action", "data"):
                self.links.append(value)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.texts.append(" ".join(data.split()))


@pytest.fixture
def html(results: Results) -> str:
    return page.html(collect(results.config))


def checked(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


def test_self_contained(html: str) -> None:
    checker = checked(html)
    assert all(link.startswith("#") for link in checker.links)
    assert {link[1:] for link in checker.links} <= set(checker.ids)
    assert set(re.findall(r"url\(#([^)]*)\)", html)) <= set(checker.ids)
    assert not re.search(r"<script[^>]|<link|@import|url\((?!#)|https?://(?!www.w3.org)|fetch\(|XMLHttpRequest", html)
    assert max(checker.ids.values()) == 1


def test_every_number_is_there(html: str) -> None:
    texts = Counter(checked(html).texts)
    assert texts["0.8600 ± 0.0100"] == 2  # FedAvg at both M
    assert texts["last 0.8400 ± 0.0100"] == 2
    assert texts["FedDEP paper 0.8555 ± 0.014"] == 1
    assert texts["FedSage paper 0.8645 ± 0.005"] == 1
    assert texts["-0.3500"] == 2  # Local less FedAvg
    assert texts["40.00"] == 1  # MB of FedAvg with 5 clients
    assert texts["2.000"] == 2  # MB a client and round, at both M
    assert texts["510 ± 10"] == 1
    assert texts["FedDEP paper 552"] == 1
    assert any(
        "15, 0.4 minutes of training in all, computed from 2025-01-01 12:00 UTC to 2025-01-03 12:00 UTC" in t for t in texts
    )
    assert html.count("<svg") == 1 + 4  # the letters, and four figures


def test_global_spans_the_columns(html: str) -> None:
    assert re.search(r'<th>Global</th>\s*<td colspan="2">', html)


def test_the_summary_is_computed(results: Results) -> None:
    found = overview.sentences(collect(results.config))
    assert found == [
        "15 training runs: 3 methods, 1 dataset, M = 5, 10, 1 setting, 3 seeds; 0.0 hours of training.",
        "Cora: best other than FedAvg, and its mean difference from it: Local, −0.3500.",
        "2 of 2 differences from FedAvg are significant after Holm's correction: 0 above it, 2 below.",
        "The largest of these: Local on Cora, M=5 (setting feddep), −0.3500 (p = 0.000544).",
        "Global − FedAvg, median of 2 cells: +0.0300; widest on Cora, M=5 (setting feddep): +0.0300.",
    ]


def test_the_summary_without_fedavg(tmp_path: Path) -> None:
    alone = Results(tmp_path, clients=(3,), seeds=(0,), methods=("global",)).write()
    assert overview.sentences(collect(alone.config)) == [
        "1 training run: 1 method, 1 dataset, 1 setting, 1 seed; 0.0 hours of training."
    ]


def test_the_table_of_p_values_is_folded(html: str) -> None:
    folded = re.search(r'<details class="part"><summary>All differences from FedAvg</summary>.*?</details>', html, re.DOTALL)
    assert folded
    assert "p, Holm" in folded[0]


def test_letters_are_drawn_once(html: str) -> None:
    letters = re.findall(r'<path id="(l\d+)"', html)
    assert len(set(letters)) == len(letters)
    assert {name[1:] for name in checked(html).links} >= set(letters)
    assert "DejaVu" not in html


def test_configuration_and_provenance(html: str) -> None:
    checker = checked(html)
    assert any("methods:" in text and "delta: 20" in text for text in checker.texts)
    assert "commit c0ffee, dirty False" in checker.texts
    assert "numpy 2.0.0, torch 2.5.0 (5 runs)" in checker.texts
    assert f"cora: {'f1' * 32}" in checker.texts


@pytest.mark.slow
def test_same_results_same_bytes(results: Results, html: str) -> None:
    assert page.html(collect(results.config)) == html


def test_names_are_escaped(tmp_path) -> None:
    found = collect(Results(tmp_path, settings=("one", "two"), clients=(3,)).write().config)
    renamed = found.accuracy.assign(setting=found.accuracy["setting"].replace("one", "a<b"))
    html = page.html(dataclasses.replace(found, accuracy=renamed))
    assert "a<b" not in html
    assert "a&lt;b" in html


def test_the_smallest_configuration(tmp_path) -> None:
    datasets = {"tiny": {"features": "raw", "synthetic": {}}}
    results = Results(tmp_path, datasets=datasets, clients=(3,), seeds=(0,), methods=("global",)).write()
    checker = checked(page.html(collect(results.config)))
    assert "0.8800" in checker.texts
    assert "Is it more than chance?" not in checker.texts
    assert "Communication" not in checker.texts
    assert "Partitions" not in checker.texts
    assert not any("standard deviation over seeds" in text for text in checker.texts)  # of one seed there is none


def study_folder(folder: Path, title: str) -> Path:
    """A folder like that of a finished study."""
    axes = plt.figure().subplots()
    axes.plot([0, 1], [0, 1])
    contents = {
        "table.md": f"# {title}\n\nWhat *it* shows.\n\n## Cora\n\n| a | b |\n| - | - |\n| 0.5 < 1 | **2** |\n",
        "figure": axes.figure,
    }
    files.write(folder, contents, "study")
    return folder


def test_studies_are_shown_with_their_tables(results: Results, tmp_path: Path) -> None:
    folders = {name: study_folder(tmp_path / name, f"The {name} of R & D") for name in ("depth", "width")}
    html = page.html(collect(results.config), folders)
    checker = checked(html)
    assert not [name for name, times in checker.ids.items() if times > 1]
    assert {"#study-depth", "#study-width"} <= set(checker.links)
    assert {"study-depth", "study-width"} <= set(checker.ids)
    assert checker.texts.count("The depth of R & D") == 2  # contents and heading
    assert "0.5 < 1" in checker.texts
    assert html.count("<strong>2</strong>") == 2
    assert html.count("<svg") == 1 + 6


@pytest.mark.parametrize("damage", ["table.md", "figure.svg", "study.sha256"])
def test_a_damaged_study_is_one_sentence(results: Results, tmp_path: Path, damage: str) -> None:
    folder = study_folder(tmp_path / "depth", "Depth")
    (folder / damage).write_text("other")
    with pytest.raises(DataError, match=r"run the stage study again"):
        page.html(collect(results.config), {"depth": folder})
