"""What methods assume is said in the words of docs/methods.md."""

import re
from pathlib import Path

import pytest

from feddep.methods import registry

PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
WORDS = re.findall(r"^\| `([^`]+)` \| [A-Z].*\. \|$", PAGE, re.MULTILINE)
ROWS = {name: re.findall("`([^`]+)`", words) for name, words in re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", PAGE, re.MULTILINE)}


def test_the_vocabulary_is_small_and_used():
    assert 5 <= len(WORDS) <= 11
    assert set(WORDS) == {word for words in ROWS.values() for word in words}


@pytest.mark.parametrize("name", registry.methods())
def test_a_method_assumes_what_its_row_says(name):
    assert sorted(registry.find(name).assumes) == sorted(ROWS[name])
