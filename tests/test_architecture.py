"""The house rules of docs/architecture.md: dependencies point down."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "feddep"
TABLE = (ROOT / "docs/architecture.md").read_text().partition("## Layers")[2].partition("##")[0]
LAYERS = [
    name.removesuffix("/").removesuffix(".py")
    for line in re.findall(r"^\| ?(`[^|]+)", TABLE, re.M)
    for name in re.findall(r"`([\w/.]+)`", line)
]
"""The packages in the order of the table, from the lowest on."""


def test_the_table_names_every_package():
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    single = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert set(LAYERS) == packages | single


def test_dependencies_point_down():
    """Also inside functions and for type checkers."""
    upward = []
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).with_suffix("").parts[0]
        text = path.read_text(encoding="utf-8")
        imports = re.findall(r"^ *(?:from|import) feddep(?:\.(\w+)| import (.+))", text, re.M)
        names = {name for line in imports for name in re.findall(r"\w+", " ".join(line))}
        if own in LAYERS:
            upward += [(own, name) for name in names & {*LAYERS[LAYERS.index(own) + 1 :]}]
    assert upward == []
