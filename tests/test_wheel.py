"""The wheel: what `pip install .` puts somewhere else is complete, without this repository on the
path.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = (
    "feddep",
    "workflow",
    "config",
    "studies",
    "results",
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
)
PROGRAM = """
import sys
from feddep import api
from feddep.datasets.public_graphs import REGISTRY

assert api.__file__.startswith(sys.argv[1]), api.__file__
assert "cora" in REGISTRY
graph = api.synthetic_graph(nodes=60, classes=3, communities=6, features=30)
result = api.run(
    "fedavg", graph, api.split(graph), api.partition(graph, 2, delta=5), setting={"rounds": 1,
    "hidden_channels": 8}, device="cpu"
)
print(result.accuracy["best"])
"""
RIVALS = """
from feddep import tuning
from feddep.config.loading import load
from feddep.experiment import plan, runs
from feddep.reporting.load import assemble

config = load()
rivals = plan.compared_runs(config, "field_pooled")
found = assemble(config, "field_pooled", rivals["cora"], runs.load(config, rivals["cora"]))
print(len(rivals), "0.844" in tuning.recorded_reference("cora", "field", None), end=" ")
print(found.entry["options"]["reference"])
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel installs; it is built from a copy, as building writes into the
    source.
    """
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCE:
        if (REPOSITORY / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".cache", "verify", "*.svg")
            shutil.copytree(
                REPOSITORY / name, folder / "source" / name, symlinks=True, ignore=ignored
            )
        else:
            shutil.copy(REPOSITORY / name, folder / "source" / name)
    options = [
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--disable-pip-version-check",
    ]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", folder, folder / "source"],
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    shutil.rmtree(folder / "source")
    return folder / "site"


def run(installed: Path, folder: Path, *arguments: str) -> str:
    """What Python prints with the wheel on its path, and the repository not."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, *arguments]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_every_file_of_the_package_is_in_the_wheel(installed: Path):
    for name in ("feddep", "workflow", "config", "studies", "results/runs"):
        target = (
            installed / "feddep" if name == "feddep" else installed / "feddep" / "project" / name
        )
        files = [
            path
            for path in (REPOSITORY / name).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and path.name[0] != "."
        ]
        assert len(files) > 3
        for path in files:
            assert (
                target / path.relative_to(REPOSITORY / name)
            ).read_bytes() == path.read_bytes(), path


def test_an_installed_package_does_its_work(installed: Path, tmp_path: Path):
    assert re.fullmatch(r"0\.\d+\n", run(installed, tmp_path, "-c", PROGRAM, str(installed)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.dag
def test_the_workflow_of_an_installed_package_runs(installed: Path, tmp_path: Path):
    """And knows the recorded rivals."""
    run(installed, tmp_path, "-m", "feddep", "workflow", "copy")
    assert run(installed, tmp_path / "copy", "-c", RIVALS) == "14 True fedavg_finetuned\n"
    plan = ["-m", "snakemake", "--dry-run", "--configfile", "config/smoke.yaml"]
    assert re.search(r"^batch +\d+$", run(installed, tmp_path / "copy", *plan), re.MULTILINE)
