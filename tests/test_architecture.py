"""The house rules of docs/architecture.md: dependencies point down."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "feddep").rglob("*.py"))


def layers() -> list[str]:
    """The packages in the order of the table, from the lowest on."""
    section = (
        (ROOT / "docs/architecture.md").read_text().partition("## Layers")[2].partition("##")[0]
    )
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([\w/.]+)`", cell)]


LAYERS = [name.strip("/").removesuffix(".py") for name in layers()]


def layer(module: str) -> int | None:
    """The place of ``feddep.PACKAGE…`` in the order; None for what is not in it, such as ``feddep``
    itself.
    """
    parts = module.split(".")
    return LAYERS.index(parts[1]) if len(parts) > 1 and parts[1] in LAYERS else None


def imports(path: Path) -> set[str]:
    """The modules of feddep that a file imports anywhere, also inside functions and for type
    checkers.
    """
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {
                node.module,
                *(f"{node.module}.{alias.name}" for alias in node.names if node.module == "feddep"),
            }
    return {name for name in found if name.startswith("feddep.")}


def test_the_table_names_every_package():
    packages = {
        path.name for path in (ROOT / "feddep").iterdir() if (path / "__init__.py").exists()
    }
    single = {path.stem for path in (ROOT / "feddep").glob("*.py")} - {"__init__", "__main__"}
    assert set(LAYERS) == packages | single


def test_dependencies_point_down():
    upward = []
    for path in MODULES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        own = layer(module)
        if own is not None:
            upward += [
                f"{module} imports {name}" for name in imports(path) if (layer(name) or 0) > own
            ]
    assert upward == []
