"""Pages of results say what the tables say."""

from pathlib import Path

import pages
import pandas as pd
import pytest
from jinja2 import UndefinedError

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def tables(tmp_path: Path) -> pages.Tables:
    (tmp_path / "one").mkdir()
    rows = [
        ("cora", "fedavg", 0.12345, 0.01),
        ("cora", "local", -0.0001, 0.02),
        ("pubmed", "fedavg", 0.5, None),
    ]
    table = pd.DataFrame(rows, columns=["dataset", "method", "mean", "std"]).assign(
        low=-0.25, high=0.75, verdict=["worse", "undecided", "worse"]
    )
    table.to_csv(tmp_path / "one" / "table.csv", index=False)
    return pages.Tables(tmp_path)


def rendered(text: str, tables: pages.Tables) -> str:
    return pages.environment(tables).from_string(text).render()


@pytest.mark.parametrize("template", pages.templates(), ids=str)
def test_a_page_is_what_its_template_renders(template: Path):
    page = (ROOT / template.with_suffix("")).read_text(encoding="utf-8")
    assert page == pages.render(template), f"{template} renders another page: make pages"


def test_numbers(tables: pages.Tables):
    assert rendered("{{ num('one', 'mean', method='local') }}", tables) == "0.000"
    assert rendered("{{ num('one', 'mean', 4, method='local') }}", tables) == "−0.0001"
    assert rendered("{{ num('one', 'std', dataset='pubmed') }}", tables) == "–"
    assert (
        rendered("{{ diff('one', 'mean', 2, dataset='pubmed') }}", tables) == "+0.50 [−0.25, +0.75]"
    )
    assert rendered("{{ span('one', 'mean', method='fedavg') }}", tables) == "0.123 to 0.500"
    assert rendered("{{ mean('one', 'mean', sign=True, method=['fedavg']) }}", tables) == "+0.312"
    assert rendered("{{ count('one', std=None) }}", tables) == "1"
    assert rendered("{{ verdicts('one') }}", tables) == "2 worse, 1 undecided"


def test_a_grid(tables: pages.Tables):
    assert rendered("{{ grid('one', 'dataset', ['mean', 'std']) }}", tables).splitlines() == [
        "||Cora|PubMed|",
        "|---|---:|---:|",
        "|Local|0.000; 0.020|–|",
        "|FedAvg|0.123; 0.010|0.500; –|",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "{{ num('one', 'mean', method='fedavg') }}",
        "{{ num('one', 'mean', method='nobody') }}",
        "{{ num('one', 'mean', clients=3) }}",
        "{{ nothing }}",
    ],
)
def test_what_is_not_one_row_or_unknown_is_an_error(text: str, tables: pages.Tables):
    with pytest.raises((LookupError, UndefinedError)):
        rendered(text, tables)


@pytest.mark.parametrize(
    ("method", "expected"),
    [("global", True), ("fedgcn", True), ("fedavg_oracle", True), ("fedpub", False)],
)
def test_what_sees_more_of_the_graph(method: str, expected: bool):
    assert pages.sees_more(method) is expected
