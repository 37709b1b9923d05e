"""docs/reliability.md says of every kind of trial how many there are."""

import re
from pathlib import Path

from trials import QUICK_AND_FULL

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def test_the_page_has_the_number_of_every_trial():
    rows = re.findall(r"^\| .*? \| ([\d,]+) \| ([\d,]+) \| `make trials` .*\(`(\w+)`\) \|$", PAGE, re.MULTILINE)
    found = {name: int(tried.replace(",", "")) for tried, _, name in rows}
    assert found == {name: full for name, (_, full) in QUICK_AND_FULL.items()}
    assert all(tried == passed for tried, passed, _ in rows)


def test_the_files_that_it_names_are_there():
    named = re.findall(r"`(tests/[\w/]+\.py)`", PAGE)
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []
