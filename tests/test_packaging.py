"""The environments agree, and what must start fast loads no heavy library."""

import re
import subprocess
import sys
from pathlib import Path

import pages
import pytest
import yaml
from packaging.utils import canonicalize_name

import feddep

ROOT = Path(__file__).resolve().parent.parent
CONDA_NAMES = {
    "pytorch": "torch",
    "pytorch_geometric": "torch-geometric",
    "python-igraph": "igraph",
    "snakemake-minimal": "snakemake",
}


def test_conda_names_the_versions_of_the_lock():
    direct = (ROOT / "requirements.lock").read_text().partition("# What those need")[0]
    pins = re.findall(r"^([\w.-]+)==(\S+)", direct, re.MULTILINE)
    lines = re.findall(
        r"^ +- ([\w.-]+) =(\S+)", (ROOT / "environment.yml").read_text(), re.MULTILINE
    )
    conda = {canonicalize_name(CONDA_NAMES.get(name, name)): version for name, version in lines}
    assert conda == {canonicalize_name(name): version for name, version in pins}


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
            "import feddep.experiment.stages\n"
            "import torch\nfrom feddep.training.learner import OPTIMIZERS\nfor make in "
            "OPTIMIZERS.values():\n"
            "    weight = torch.nn.Parameter(torch.ones(3))\n    weight.sum().backward()\n    "
            "make([weight], lr=0.1).step()",
            {"torch._dynamo", "scipy.stats"},
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


def test_the_citation_has_what_its_format_asks_for():
    """Required keys, names as it calls them, no author of a work twice; the package's version."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == feddep.__version__
    assert citation["repository-code"] == pages.urls()["Repository"]
    assert {"message", "license", "keywords"} <= set(citation)
    for work in (citation, *citation["references"]):
        assert work["type"] in ("software", "article", "conference-paper")
        assert work["title"]
        names = [tuple(author.items()) for author in work["authors"]]
        assert len(set(names)) == len(names) > 0
        assert all(
            [key for key, _ in name] in (["name"], ["family-names", "given-names"])
            for name in names
        )
