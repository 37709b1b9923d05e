"""What methods assume is said in the words of docs/methods/index.md."""

import re
from pathlib import Path

import pytest

from feddep.methods import registry

PAGE = (Path(__file__).parents[2] / "docs" / "methods" / "index.md").read_text(encoding="utf-8")
ROWS = {
    name: re.findall("`([^`]+)`", words)
    for name, words in re.findall(r"^\| \[`(\w+)`\].* \| (.*) \|$", PAGE, re.MULTILINE)
}


@pytest.mark.parametrize("name", registry.methods())
def test_a_method_assumes_what_its_row_says(name):
    assert sorted(registry.find(name).assumes) == sorted(ROWS[name])
