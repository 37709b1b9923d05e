"""The registry is complete, and quick to import."""

import re
import subprocess
import sys

import pytest

from feddep.datasets import package_loaders
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
        # Shchur et al. (2018), Table 1; edges as PyG counts them, halved
        ("coauthor_physics", (34493, 495924 // 2, 8415, 5)),
        ("amazon_computers", (13752, 491722 // 2, 767, 10)),
        ("amazon_photo", (7650, 238162 // 2, 745, 8)),
        # Wu et al. (2023), Table 2, with edges as the loaders give them: both directions of each, and 128 self-loops of
        # ogbn-products
        ("reddit", (232965, 114615892 // 2, 602, 41)),
        ("ogbn_products", (2449029, 123718280 // 2 - 128, 100, 47)),
        # Hu et al. (2020); edges as PyG's to_undirected leaves them, halved
        ("ogbn_arxiv", (169343, 2315598 // 2, 128, 40)),
        # Platonov et al. (2023), without self-loops; features as PyG has them
        ("roman_empire", (22662, 32927, 300, 18)),
        ("amazon_ratings", (24492, 93050, 300, 5)),
        ("minesweeper", (10000, 39402, 7, 2)),
        ("tolokers", (11758, 519000, 10, 2)),
        ("questions", (48921, 153540, 301, 2)),
        ("cornell", (183, 277, 1703, 5)),
        ("texas", (183, 279, 1703, 5)),
        ("wisconsin", (251, 450, 1703, 5)),
        ("actor", (7600, 26659, 932, 5)),
        ("chameleon", (2277, 31371, 2325, 5)),
        ("squirrel", (5201, 198353, 2089, 5)),
    ],
)
def test_sizes_are_those_of_the_papers(name: str, size: tuple[int, ...]) -> None:
    dataset = find(name)
    assert (dataset.nodes, dataset.edges, dataset.features, dataset.classes) == size


@pytest.mark.parametrize("dataset", REGISTRY.values(), ids=REGISTRY)
def test_every_entry_can_be_fetched_and_verified(dataset: Dataset) -> None:
    assert REGISTRY[dataset.name] is dataset
    accepted = [checksums for release in dataset.releases for checksums in release.files.values()]
    checksums = [checksum for each in accepted for checksum in each]
    if dataset.loader is not None:
        assert dataset.loader.package in package_loaders._LOADERS
        assert (dataset.large, dataset.fingerprint, checksums) == (dataset.nodes > 100_000, None, [])
        assert list(dataset.release.files) == [f"{dataset.name}.{part}.npy" for part in ("edges", "features", "labels")]
        return
    assert re.fullmatch("https://.+/", dataset.url)
    assert dataset.fingerprint
    assert all(accepted)
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
