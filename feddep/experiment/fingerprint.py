"""A fingerprint of the code that determines a number: kept with every result, never part of its key."""

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The directory of the package ``feddep``."""

CANNOT_CHANGE_A_NUMBER = frozenset(
    {
        "feddep",  # the version string
        "feddep.utils.errors",  # exception classes: a run that raises one has no result
        "feddep.utils.storage",  # files come back as they were written, or not at all
        "feddep.utils.progress",  # what a person sees while waiting
        "feddep.utils.parameters",  # what it reads is in the key as values
    }
)
"""Modules that a fingerprint does not depend on. They are not followed either: what only they import does not count."""


@cache
def code_fingerprint(*modules: str, root: Path = ROOT) -> str:
    """SHA-256 over the source of ``modules`` and of every module of the package that they import, directly or not.

    The imports are found in the source, without importing anything; an import inside a function counts, one by
    ``importlib`` does not.  Comments, docstrings, blank lines and trailing blanks do not count, nor do the modules in
    :data:`CANNOT_CHANGE_A_NUMBER`.  The digest depends neither on the version of Python nor on where the package lies.
    It is computed once in a process: a file that changes meanwhile is not the code that runs.

    Args:
        modules: dotted names, such as ``"feddep.graph.partition"``.
        root: the directory of the package.

    Raises:
        ValueError: if one of ``modules`` does not exist.
    """
    digest = hashlib.sha256()
    for name in sorted(closure(modules, root)):
        digest.update(f"{name}\n{bare(_source(root, name))}\n".encode())
    return digest.hexdigest()


def closure(modules: Iterable[str], root: Path = ROOT) -> set[str]:
    """Names of ``modules`` and of everything in the package that they import, less :data:`CANNOT_CHANGE_A_NUMBER`."""
    modules = list(modules)
    for name in modules:
        if _file(root, name) is None:
            raise ValueError(f"there is no module {name} in {root}")
    waiting, seen = modules, set()
    while waiting:
        name = waiting.pop()
        if name in seen or name in CANNOT_CHANGE_A_NUMBER or _file(root, name) is None:
            continue
        seen.add(name)
        waiting.extend(_imports(root, name))
    return seen


def imported_by(sources: Iterable[str], root: Path = ROOT) -> set[str]:
    """Modules of the package that source from elsewhere imports."""
    return {name for source in sources for name in _imported(source, "") if _file(root, name) is not None}


def _file(root: Path, name: str) -> Path | None:
    """The source file of a dotted name, or None where the name is no module of the package."""
    package, *parts = name.split(".")
    if package != root.name:
        return None
    base = root.joinpath(*parts)
    candidates = [base / "__init__.py", base.with_suffix(".py")] if parts else [root / "__init__.py"]
    return next((path for path in candidates if path.is_file()), None)


def _source(root: Path, name: str) -> str:
    path = _file(root, name)
    assert path is not None, name
    return path.read_text(encoding="utf-8")


def _imports(root: Path, name: str) -> tuple[str, ...]:
    """Dotted names that a module may load: what it imports, and the packages that lead there."""
    path = _file(root, name)
    assert path is not None, name
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    targets = [name, *_imported(_source(root, name), package)]
    parents = [target.rsplit(".", cut)[0] for target in targets for cut in range(1, target.count(".") + 1)]
    return tuple(dict.fromkeys([*targets, *parents]))


@cache
def _imported(source: str, package: str) -> tuple[str, ...]:
    """Dotted names in the import statements of ``source``, a module of ``package``."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            origin = ".".join(part for part in (above, node.module) if part)
            # `from a import b` loads the module a.b where there is one; where b is a plain name, no file answers to it.
            names += [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
    return tuple(names)


@cache
def bare(source: str) -> str:
    """Python source without comments, docstrings (any string that stands alone), blank lines and trailing blanks of code."""
    lines = [line.encode() for line in source.splitlines()]
    text = _text(source)
    inside = [number in text for number in range(len(lines))]
    cuts = [*_comments(source), *_lone_strings(source)]
    for (first, start), (last, end) in sorted(cuts, reverse=True):
        lines[first] = lines[first][:start] + lines[last][end:]
        inside[first] = inside[last]
        del lines[first + 1 : last + 1], inside[first + 1 : last + 1]
    kept = (line if keep else line.rstrip() for line, keep in zip(lines, inside, strict=True))
    return b"\n".join(line for line, keep in zip(kept, inside, strict=True) if line or keep).decode()


Span = tuple[tuple[int, int], tuple[int, int]]
"""From (line, byte) to (line, byte), both counted from zero."""


def _comments(source: str) -> Iterable[Span]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            start = len(token.line[:column].encode())
            yield (line - 1, start), (line - 1, start + len(token.string.encode()))


def _text(source: str) -> set[int]:
    """Lines, counted from zero, that end within a string: their blanks are text."""
    strings = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.JoinedStr | ast.Constant)]
    strings = [node for node in strings if isinstance(node, ast.JoinedStr) or isinstance(node.value, str)]
    return {line - 1 for node in strings for line in range(node.lineno, node.end_lineno or node.lineno)}


def _lone_strings(source: str) -> Iterable[Span]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            start, end = node.col_offset, node.end_col_offset
            assert node.end_lineno is not None  # ast.parse always says where a node ends
            assert end is not None
            yield (node.lineno - 1, start), (node.end_lineno - 1, end)
