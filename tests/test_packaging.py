"""One environment, said in three ways: pyproject.toml, requirements.lock and environment.yml agree."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
CONDA_NAMES = {"pytorch": "torch", "pytorch-geometric": "torch-geometric", "snakemake-minimal": "snakemake"}
OPTIONAL = {"cryptography", "flwr", "ogb"}  # imported only by federations of processes, and for datasets that need it
IMPORT_NAMES = {"PIL": "pillow", "community": "python-louvain", "sklearn": "scikit-learn", "yaml": "pyyaml"}


def lock(part: str) -> dict[str, str]:
    """Names and versions of one part of the lock: ``direct``, or ``all``."""
    text = (ROOT / "requirements.lock").read_text()
    if part == "direct":
        text = text.partition("# What those need")[0]
    pins = re.findall(r"^([\w.-]+)==([^\s]+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def project() -> dict[str, Requirement]:
    """The requirements of the project and of its development, by name."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = map(Requirement, [*table["dependencies"], *table["optional-dependencies"]["dev"]])
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def test_every_line_of_the_lock_is_a_pin():
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==\d[\w.]*( +# .+)?", line) for line in pins)
    assert len(lock("all")) == len(pins)  # nothing twice


def test_conda_names_the_versions_of_the_lock():
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pins = [entry.split(" =") for entry in dependencies if isinstance(entry, str) and " =" in entry]
    conda = {canonicalize_name(name): version for name, version in pins}
    assert {CONDA_NAMES.get(name, name): version for name, version in conda.items()} == lock("direct")


def test_the_lock_fulfils_what_the_project_asks_for():
    pins, requirements = lock("direct"), project()
    assert set(requirements) == set(pins) - {"setuptools"}
    assert all(requirement.specifier.contains(pins[name]) for name, requirement in requirements.items())


def test_the_python_that_is_asked_for():
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    conda = next(entry for entry in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"] if "python " in entry)
    assert conda.removeprefix("python ") == table["project"]["requires-python"]
    assert "sys.version_info < (3, 11)" in (ROOT / "Makefile").read_text()


def test_the_environment_is_the_lock():
    """What is installed here, by pip or conda, is what the lock says."""
    listed = subprocess.run([sys.executable, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True)
    pairs = (line.split("==") for line in listed.stdout.splitlines() if "==" in line)
    installed = {canonicalize_name(name): Version(version).public for name, version in pairs}
    wrong = {name: (version, installed.get(name)) for name, version in lock("direct").items() if installed.get(name) != version}
    assert wrong == {}


@pytest.mark.parametrize("folder", ["feddep", "tests", "benchmarks"])
def test_every_import_is_a_direct_dependency(folder: str):
    local = {path.stem for path in ROOT.glob("tests/**/*.py")} | {"feddep", "benchmarks", "golden"}
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    outside = {canonicalize_name(IMPORT_NAMES.get(name, name)) for name in found - local - sys.stdlib_module_names}
    assert outside - set(lock("direct")) == (OPTIONAL if folder == "feddep" else set())
