"""The code fingerprint moves when, and only when, the code that a result depends on says something else."""

import ast
import io
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

from feddep.experiment import fingerprint
from feddep.experiment.fingerprint import bare, closure, code_fingerprint

SOURCES = {
    "__init__.py": '__version__ = "1"\n',
    "top.py": "from toy.middle import work\nfrom toy import errors\n\n\ndef run():\n    return work()\n",
    "middle.py": '"""Middle."""\nimport toy.deep.core\n\n\ndef work():\n    """Work."""\n    return toy.deep.core.value()  # a\n',
    "deep/__init__.py": "",
    "deep/core.py": "from .sibling import one\n\n\ndef value():\n    from ..lazy import two\n    return one + two\n",
    "deep/sibling.py": "one = 1\n",
    "deep/unrelated.py": "three = 3\n",
    "lazy.py": "two = 2\n",
    "other.py": "four = 4\n",
    "errors.py": "from toy import other\n\n\nclass Oops(Exception):\n    pass\n",
}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package ``toy`` whose ``errors`` cannot change a number."""
    monkeypatch.setattr(fingerprint, "CANNOT_CHANGE_A_NUMBER", frozenset({"toy", "toy.errors"}))
    root = tmp_path / "toy"
    for name, source in SOURCES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source, encoding="utf-8")
    return root


def anew(*modules: str, root: Path) -> str:
    """The fingerprint as another process would compute it."""
    code_fingerprint.cache_clear()
    return code_fingerprint(*modules, root=root)


def test_closure_follows_every_form_of_import(toy: Path):
    names = {"top", "middle", "deep", "deep.core", "deep.sibling", "lazy"}
    assert closure(["toy.top"], toy) == {f"toy.{name}" for name in names}


@pytest.mark.parametrize("name", ["top.py", "middle.py", "deep/__init__.py", "deep/core.py", "deep/sibling.py", "lazy.py"])
def test_a_change_anywhere_below_changes_the_fingerprint(toy: Path, name: str):
    before = anew("toy.top", root=toy)
    (toy / name).write_text(SOURCES[name] + "\nnew = 1\n")
    assert anew("toy.top", root=toy) != before


@pytest.mark.parametrize("name", ["__init__.py", "errors.py", "other.py", "deep/unrelated.py"])
def test_a_change_elsewhere_does_not(toy: Path, name: str):
    before = anew("toy.top", root=toy)
    (toy / name).write_text(SOURCES[name] + "\nnew = 1\n")
    assert anew("toy.top", root=toy) == before


def test_a_new_import_is_followed(toy: Path):
    (toy / "top.py").write_text(SOURCES["top.py"] + "import toy.other\n")
    before = anew("toy.top", root=toy)
    (toy / "other.py").write_text("four = 5\n")
    assert anew("toy.top", root=toy) != before


def test_words_for_the_reader_do_not_count(toy: Path):
    before = anew("toy.top", root=toy)
    (toy / "middle.py").write_text(
        '"""Another docstring,\nof two lines."""\n# a comment\nimport toy.deep.core  # another\n\n\n\n'
        "def work():\n    '''Does “the” work.'''\n\n    return toy.deep.core.value()   \n",
        encoding="utf-8",
    )
    assert anew("toy.top", root=toy) == before


def test_what_a_string_says_counts(toy: Path):
    (toy / "lazy.py").write_text('two = "# 2"\n')
    before = anew("toy.top", root=toy)
    (toy / "lazy.py").write_text('two = "# 3"\n')
    assert anew("toy.top", root=toy) != before


def test_blanks_count_within_text_and_nowhere_else():
    with_blanks = 'T = f"""\none \n\ntwo\n"""\n\n\nX = 1 \n'
    assert bare(with_blanks) == 'T = f"""\none \n\ntwo\n"""\nX = 1'
    assert bare(with_blanks.replace("one \n\n", "one\n")) != bare(with_blanks)


def test_the_place_of_the_package_does_not_count(toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    moved = tmp_path / "elsewhere" / "toy"
    shutil.copytree(toy, moved)
    before = anew("toy.top", root=toy)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert code_fingerprint("toy.top", root=moved) == before


def test_the_order_of_modules_does_not_count(toy: Path):
    assert code_fingerprint("toy.other", "toy.lazy", root=toy) == code_fingerprint("toy.lazy", "toy.other", root=toy)


def test_a_module_that_does_not_exist_is_an_error(toy: Path):
    with pytest.raises(ValueError, match=r"no module toy\.nothing"):
        code_fingerprint("toy.nothing", root=toy)


def test_bare_source():
    source = (
        '"""Doc."""\n\nX = 1  # é\n"""About X,\nat length."""\n\n\ndef f(a):\n    "doc"\n    # note\n    return f"#{a}" "# no"\n'
    )
    assert bare(source) == 'X = 1\ndef f(a):\n    return f"#{a}" "# no"'


def test_bare_source_cuts_behind_characters_of_several_bytes():
    assert bare('ä = "ö"; "ü"; ß = 1  # é\n') == 'ä = "ö"; ; ß = 1'


def tokens(source: str, skipped_lines: set[int]) -> list[str]:
    """The tokens that the parser sees, less those on some lines."""
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in found if token.type not in silent and token.start[0] not in skipped_lines]


@pytest.mark.slow
def test_bare_source_of_every_module_keeps_every_token_of_the_code():
    for path in fingerprint.ROOT.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        docstrings = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
        docstrings = [node for node in docstrings if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)]
        lines = {line for node in docstrings for line in range(node.lineno, node.end_lineno + 1)}
        assert tokens(bare(source), set()) == tokens(source, lines), path


def other_python() -> str | None:
    """Another version of Python on this machine, if there is one."""
    ours = sys.version_info[:2]
    for minor in range(11, 16):
        name = f"python3.{minor}"
        path = shutil.which(name)
        if (3, minor) != ours and path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return path
    return None


def test_every_python_gives_the_same_digest():
    python = other_python()
    if python is None:
        pytest.skip("there is no other version of Python on this machine")
    # Only this module is loaded, by path: the other Python has none of the packages.
    program = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('fingerprint', sys.argv[1])\n"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
        "print(module.code_fingerprint('feddep.methods.basic.fedavg', 'feddep.cli'))\n"
    )
    result = subprocess.run([python, "-c", program, fingerprint.__file__], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == code_fingerprint("feddep.methods.basic.fedavg", "feddep.cli")


def test_excluded_modules_exist():
    """A module that was renamed must not linger in the list."""
    for name in fingerprint.CANNOT_CHANGE_A_NUMBER:
        assert fingerprint._file(fingerprint.ROOT, name) is not None, name


def test_what_computes_is_in_the_closure_of_training():
    names = closure(["feddep.methods.basic.fedavg", "feddep.graph.partition"])
    assert {
        "feddep.graph.graph",
        "feddep.graph.sampling",
        "feddep.utils.seeding",
        "feddep.nn.sage",
        "feddep.graph.partition",
        "feddep.graph.split",
    } <= names
    lower = ("reporting", "stages", "experiment", "config", "measurements", "audit")
    assert not [name for name in names if name.startswith(tuple(f"feddep.{package}" for package in lower))]
