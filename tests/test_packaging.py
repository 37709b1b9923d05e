"""One environment, said in three ways: pyproject.toml, requirements.lock and environment.yml
agree.
"""

import ast
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
CONDA_NAMES = {
    "pytorch": "torch",
    "pytorch-geometric": "torch-geometric",
    "python-igraph": "igraph",
    "snakemake-minimal": "snakemake",
}
# What a benchmark measures beside us, where it is installed.
PEERS = {
    "federatedscope",
    "openfgl",
    "torch-sparse",
}
IMPORT_NAMES = {
    "community": "python-louvain",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


def lock(part: str) -> dict[str, str]:
    """Names and versions of one part of the lock: ``direct``, or ``all``."""
    text = (ROOT / "requirements.lock").read_text()
    if part == "direct":
        text = text.partition("# What those need")[0]
    pins = re.findall(r"^([\w.-]+)==([^\s]+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def project() -> dict[str, Requirement]:
    """The requirements of the project and of all its extras, by name."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [each for extra in table["optional-dependencies"].values() for each in extra]
    requirements = {
        canonicalize_name(each.name): each
        for each in map(Requirement, [*table["dependencies"], *extras])
    }
    return {name: each for name, each in requirements.items() if name != table["name"]}


def instructions() -> list[tuple[str, str]]:
    """The instructions of Dockerfile, each with its arguments on one line."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace(
        "\\\n", " "
    )
    return [
        (name, arguments)
        for name, _, arguments in (line.partition(" ") for line in text.splitlines() if line)
    ]


def copied() -> list[tuple[str, str]]:
    """Sources and destinations of what Dockerfile copies."""
    lines = [arguments.split() for name, arguments in instructions() if name == "COPY"]
    words = [[word for word in line if not word.startswith("--")] for line in lines]
    return [(source, target) for *sources, target in words for source in sources]


def test_conda_names_the_versions_of_the_lock():
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pins = [entry.split(" =") for entry in dependencies if isinstance(entry, str) and " =" in entry]
    conda = {canonicalize_name(name): version for name, version in pins}
    assert {CONDA_NAMES.get(name, name): version for name, version in conda.items()} == lock(
        "direct"
    )


def test_the_lock_fulfils_what_the_project_asks_for():
    pins, requirements = lock("direct"), project()
    assert set(requirements) == set(pins) - {"setuptools"}
    assert all(
        requirement.specifier.contains(pins[name]) for name, requirement in requirements.items()
    )


@pytest.mark.parametrize("folder", ["feddep", "workflow", "studies", "tests", "benchmarks"])
def test_every_import_is_a_direct_dependency(folder: str):
    local = {"feddep", "benchmarks", "golden", "studies"}
    local |= {path.stem for own in ("tests/**/*.py", "docs/*.py") for path in ROOT.glob(own)}
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    outside = {
        canonicalize_name(IMPORT_NAMES.get(name, name))
        for name in found - local - sys.stdlib_module_names
    }
    assert outside - set(lock("direct")) <= (PEERS if folder == "benchmarks" else set())


def test_the_python_that_is_asked_for():
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    conda = next(
        entry
        for entry in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
        if "python " in entry
    )
    assert conda.removeprefix("python ") == table["project"]["requires-python"]
    assert "sys.version_info < (3, 11)" in (ROOT / "Makefile").read_text()
    python = (
        next(arguments for name, arguments in instructions() if name == "FROM")
        .removeprefix("python:")
        .partition("-")[0]
    )
    assert Requirement(f"python{table['project']['requires-python']}").specifier.contains(python)


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        (
            "import feddep.datasets.public_graphs",
            {"torch", "pandas", "networkx", "scipy", "numpy", "requests", "pooch"},
        ),
        (
            "import feddep.graph.partition, feddep.graph.partitioners, feddep.graph.split, "
            "feddep.graph.scaling",
            {"torch", "networkx"},
        ),
        (
            "import torch\nfrom feddep.training.learner import OPTIMIZERS\nfor make in "
            "OPTIMIZERS.values():\n"
            "    weight = torch.nn.Parameter(torch.ones(3))\n    weight.sum().backward()\n    "
            "make([weight], lr=0.1).step()",
            {"torch._dynamo"},
        ),
        ("from feddep.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass", {"torch"}),
    ],
)
def test_what_must_start_fast_loads_no_heavy_library(program: str, heavy: set[str]):
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
    )
    assert "feddep" in done.stdout.splitlines()[-1].split(), done.stderr
    assert not heavy & set(done.stdout.splitlines()[-1].split())


def test_dockerfile_copies_what_git_keeps():
    """What is copied exists, and .dockerignore lets all that git keeps of it through."""
    kept = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    ignored = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]

    def sent(path: str) -> bool:
        """Whether the last pattern that fits a file or a folder above it lets it through."""
        above = [path, *map(str, Path(path).parents)][:-1]
        fits = [
            rule
            for rule in ignored
            if any(fnmatch.fnmatch(part, rule.removeprefix("!")) for part in above)
        ]
        return fits[-1].startswith("!")

    for source, _ in copied():
        files = [path for path in kept if path == source or path.startswith(f"{source}/")]
        assert files, source
        assert [path for path in files if not sent(path)] == []
    assert not any(
        map(
            sent,
            [
                "results/.cache/runs/a.json",
                "tests/conftest.py",
                ".venv/bin/python",
                "docs/guide/python.md",
            ],
        )
    )


@pytest.mark.dag
def test_what_dockerfile_copies_is_all_that_the_workflow_needs(tmp_path: Path):
    for source, target in copied():
        if (ROOT / source).is_file():
            shutil.copy(ROOT / source, tmp_path / target)
        elif (
            source != "results"
        ):  # records of finished runs, which this configuration does not read
            shutil.copytree(ROOT / source, tmp_path / target, symlinks=True)
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--configfile", "config/smoke.yaml"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "feddep: 22 runs" in done.stderr
    assert re.search(r"^batch +\d+$", done.stdout, re.MULTILINE)
