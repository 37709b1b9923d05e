"""What frameworks assume is said in the words of docs/frameworks.md."""

import re
from pathlib import Path

import pytest

from feddep import frameworks

PAGE = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text(encoding="utf-8")
WORDS = re.findall(r"^\| `([^`]+)` \| [A-Z].*\. \|$", PAGE, re.MULTILINE)
ROWS = {name: re.findall("`([^`]+)`", words) for name, words in re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", PAGE, re.MULTILINE)}
SAYING = [name for name in frameworks.available() if hasattr(frameworks.load(name), "ASSUMPTIONS")]


def test_the_vocabulary_is_small_and_used():
    assert 5 <= len(WORDS) <= 10
    assert set(WORDS) == {word for words in ROWS.values() for word in words}


@pytest.mark.parametrize("name", SAYING)
def test_a_framework_assumes_what_its_row_says(name):
    assert sorted(frameworks.load(name).ASSUMPTIONS) == sorted(ROWS[name])


def test_the_published_baselines_say_what_they_assume():
    assert {"fedgnn", "fedgraph", "fedgsl"} <= set(SAYING)
