"""The registry is complete, and quick to import."""

import re
import subprocess
import sys

import pytest

from feddep.datasets.public_graphs import REGISTRY, Dataset, find, options
from feddep.utils.errors import ConfigError


def test_importing_it_loads_no_heavy_library() -> None:
    program = "import sys, feddep.datasets.public_graphs; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "pandas", "networkx", "scipy", "numpy", "requests", "pooch"} & set(loaded)


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
    assert re.fullmatch("https://.+/", dataset.url)
    checksums = [checksum for release in dataset.releases for accepted in release.files.values() for checksum in accepted]
    assert checksums
    for checksum in [f"sha256:{dataset.fingerprint}", *checksums]:
        kind, value = checksum.split(":")
        assert len(value) == {"sha256": 64, "git-blob": 40}[kind]
        assert int(value, 16)


def test_a_package_has_the_files_of_the_release_or_others() -> None:
    assert {name: [release.format for release in REGISTRY[name].releases] for name in REGISTRY if REGISTRY[name].package} == {
        "cora": ["planetoid", "content"],
        "citeseer": ["planetoid", "planetoid"],
        "pubmed": ["planetoid", "planetoid"],
    }
    assert list(find("pubmed").package.release.files) == [
        f"ind.pubmed.{part}" for part in ("allx", "ally", "tx", "ty", "graph", "test.index")
    ]


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
