"""The site in a browser, read from disk without a network."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import CHROMIUM, Browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
]
ROOT = Path(__file__).resolve().parent.parent
NAMES = """[...document.querySelectorAll(".rows tbody tr:not([hidden]) th")].map((cell) => cell.innerText)"""
GAINS = """[...document.querySelectorAll(".rows tbody tr")].map((row) => Number(row.cells[2].dataset.order))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder


@pytest.fixture
def browser(site: Path, tmp_path: Path) -> Iterator[Browser]:
    with Browser(site / "leaderboard.html", tmp_path, 1280) as opened:
        yield opened


def choose(browser: Browser, title: str, value: str) -> None:
    """Set the field of a title above the board."""
    browser.evaluate(
        f"""{{
          const label = [...document.querySelectorAll("form label")].find((each) => each.firstChild.data === "{title}");
          label.control.value = "{value}";
          label.control.dispatchEvent(new Event("input", {{ bubbles: true }}));
        }}"""
    )


def test_heads_sort_by_keyboard(browser: Browser) -> None:
    before = browser.evaluate(GAINS)
    browser.evaluate("document.querySelector('.board').focus()")
    order = []
    for _ in range(3):
        browser.press("Tab")
    for _ in range(2):
        browser.press("Enter", "\r")
        order.append(browser.evaluate("document.activeElement.closest('th').ariaSort"))
        gains = browser.evaluate(GAINS)
        assert gains == sorted(before, reverse=order[-1] == "descending")
    assert order == ["descending", "ascending"]
    assert before != gains


def test_what_is_missing_comes_last(browser: Browser) -> None:
    cells = (
        """[...document.querySelectorAll(".rows tbody tr")].map((row) => row.cells[4].innerText)"""
    )
    for _ in range(2):
        browser.evaluate("document.querySelectorAll('.board button')[4].click()")
        graphs = browser.evaluate(cells)
        assert graphs[-2:] == ["–", "–"]
        assert "–" not in graphs[:-2]


def test_rows_are_filtered_and_counted(browser: Browser) -> None:
    every = browser.evaluate(NAMES)
    choose(browser, "sees", "edges across clients")
    choose(browser, "encoder", "GCN")
    assert set(browser.evaluate(NAMES)) == {"FedGCN", "Answers, Bayes", "Answers, pooled"}
    assert browser.evaluate("document.querySelector('output').value") == f"3 of {len(every)} rows"
    choose(browser, "search", "fedgcn")
    assert browser.evaluate(NAMES) == ["FedGCN"]
    choose(browser, "sees", "any")
    choose(browser, "encoder", "any")
    choose(browser, "search", "")
    choose(browser, "beyond FedAvg", "class shares shared")
    assert set(browser.evaluate(NAMES)) == {"FedSpray", "FedGTA", "FedTAD"}


def test_columns_of_graphs_are_chosen(browser: Browser) -> None:
    heads = """[...document.querySelectorAll(".rows thead th:not([hidden])")].map((cell) => cell.innerText)"""
    assert {"bytes", "worst client"} < set(browser.evaluate(heads))
    choose(browser, "columns", "purchases")
    assert browser.evaluate(heads)[4:6] == ["Amazon Photo", "Amazon Computers"]


@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_at_400_pixels(site: Path, tmp_path: Path, dark: bool) -> None:
    with Browser(site / "leaderboard.html", tmp_path, 400, dark) as browser:
        choose(browser, "columns", "all")
        cut, places, colours = browser.evaluate(
            """(() => {
              const board = document.querySelector(".board"), place = (each) => each.getBoundingClientRect();
              board.scrollTo(500, 500);
              const row = [...board.querySelectorAll("tbody th")].at(-1), head = board.querySelector("thead th:last-child");
              const colour = (each) => getComputedStyle(each).backgroundColor;
              return [
                document.documentElement.scrollWidth - document.documentElement.clientWidth,
                [place(row).left - place(board).left, place(head).top - place(board).top, board.scrollLeft],
                [colour(row), colour(document.body)],
              ];
            })()"""
        )
    assert cut == 0
    assert places == [0, 0, 500]
    assert colours[0] == colours[1]
    assert (colours[0] == "rgb(255, 255, 255)") != dark


def test_links_lead_to_cards_and_studies(browser: Browser, site: Path) -> None:
    links = browser.evaluate("[...document.querySelectorAll('.rows a')].map((link) => link.href)")
    for link in set(links):
        file, _, anchor = link.removeprefix("file://").partition("#")
        assert f'id="{anchor}"' in Path(file).read_text(encoding="utf-8") or not anchor


def test_search_finds_from_disk(browser: Browser) -> None:
    found = browser.evaluate(
        """new Promise((done) => {
          const query = document.querySelector("[data-md-component=search-query]");
          document.querySelector("#__search").click();
          query.focus();
          query.value = "leaderboard";
          query.dispatchEvent(new Event("input", { bubbles: true }));
          setInterval(() => {
            const links = [...document.querySelectorAll(".md-search-result__link")];
            if (links.length) done(links.map((link) => link.pathname));
          }, 100);
          setTimeout(() => done([]), 10000);
        })"""
    )
    assert any(path.endswith("/leaderboard.html") for path in found)
