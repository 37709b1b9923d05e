"""The registry is complete, and quick to import."""

import subprocess
import sys

import pytest

from feddep.datasets.registry import REGISTRY, Dataset, find, options
from feddep.errors import ConfigError


def test_importing_it_loads_no_heavy_library() -> None:
    program = "import sys, feddep.datasets.registry; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "pandas", "networkx", "scipy", "numpy", "requests"} & set(loaded)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("cora", (2708, 5278, 1433, 7)),
        ("citeseer", (3327, 4552, 3703, 6)),
        ("pubmed", (19717, 44324, 500, 3)),
        ("msacademic", (18333, 81894, 6805, 15)),
    ],
)
def test_sizes_are_those_of_the_papers(name: str, size: tuple[int, ...]) -> None:
    dataset = find(name)
    assert (dataset.nodes, dataset.edges, dataset.features, dataset.classes) == size


@pytest.mark.parametrize("dataset", REGISTRY.values(), ids=REGISTRY)
def test_every_entry_can_be_fetched_and_verified(dataset: Dataset) -> None:
    assert REGISTRY[dataset.name] is dataset
    assert len(dataset.sources) >= 2
    for digest in [f"sha256:{dataset.fingerprint}", *(d for r in dataset.releases for file in r.files for d in file.digests)]:
        kind, value = digest.split(":")
        assert len(value) == {"sha256": 64, "git-blob": 40}[kind]
        assert int(value, 16)


def test_every_class_of_a_release_that_names_them_is_listed() -> None:
    named = [(dataset, release) for dataset in REGISTRY.values() for release in dataset.releases if release.class_names]
    assert named
    for dataset, release in named:
        assert len(set(release.class_names)) == dataset.classes


def test_an_unlisted_dataset_is_refused() -> None:
    config = {"datasets": {"cora": {"features": "raw"}}}
    assert options(config, "cora") == {"features": "raw"}
    with pytest.raises(ConfigError, match=r"no dataset 'pubmed', only cora"):
        options(config, "pubmed")
