"""The registry of public graphs is complete."""

import itertools
import re
from dataclasses import replace

import pytest

from feddep.datasets import public_graphs
from feddep.datasets.formats import READERS
from feddep.datasets.public_graphs import REGISTRY, Dataset, find

SIZES = {
    "cora": (2708, 5278, 1433, 7),
    "citeseer": (3327, 4552, 3703, 6),
    "pubmed": (19717, 44324, 500, 3),
    "msacademic": (18333, 81894, 6805, 15),
    # Shchur et al. (2018), Table 1; edges as PyG counts them, halved
    "coauthor_physics": (34493, 495924 // 2, 8415, 5),
    "amazon_computers": (13752, 491722 // 2, 767, 10),
    "amazon_photo": (7650, 238162 // 2, 745, 8),
    # Wu et al. (2023), Table 2, which counts both directions of each edge, and 128 self-loops of ogbn-products
    "reddit": (232965, 114615892 // 2, 602, 41),
    "ogbn_products": (2449029, 123718280 // 2 - 128, 100, 47),
    # Hu et al. (2020); edges as PyG's to_undirected leaves them, halved
    "ogbn_arxiv": (169343, 2315598 // 2, 128, 40),
    # Platonov et al. (2023), without self-loops; features as PyG has them
    "roman_empire": (22662, 32927, 300, 18),
    "amazon_ratings": (24492, 93050, 300, 5),
    "minesweeper": (10000, 39402, 7, 2),
    "tolokers": (11758, 519000, 10, 2),
    "questions": (48921, 153540, 301, 2),
    "cornell": (183, 277, 1703, 5),
    "texas": (183, 279, 1703, 5),
    "wisconsin": (251, 450, 1703, 5),
    "actor": (7600, 26659, 932, 5),
    "chameleon": (2277, 31371, 2325, 5),
    "squirrel": (5201, 198353, 2089, 5),
}


def test_sizes_are_those_of_the_papers() -> None:
    assert {name: (each.nodes, each.edges, each.features, each.classes) for name, each in REGISTRY.items()} == SIZES


@pytest.mark.parametrize("dataset", REGISTRY.values(), ids=REGISTRY)
def test_every_entry_can_be_fetched_and_verified(dataset: Dataset) -> None:
    assert REGISTRY[dataset.name] is dataset
    assert re.fullmatch("https?://.+/", dataset.url)
    assert dataset.large == (dataset.nodes > 100_000)
    for release in dataset.releases:
        assert release.format in READERS
        assert len(set(release.class_names)) in (0, dataset.classes)
        assert all(release.files.values()) != dataset.large  # only of the large ones no checksum is known
        for checksum in itertools.chain(*release.files.values()):
            kind, value = checksum.split(":")
            assert len(value) == {"sha256": 64, "git-blob": 40}[kind]
            assert int(value, 16)


def test_a_fingerprint_identifies_a_dataset_or_else_its_release(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find("cora").identity == find("cora").fingerprint
    reddit = find("reddit")
    others = replace(reddit, name="other"), replace(reddit, release=replace(reddit.release, files={"other.zip": []}))
    found = [each.identity for each in (reddit, *others, replace(reddit, fingerprint="0" * 64))]
    monkeypatch.setattr(public_graphs, "REVISION", public_graphs.REVISION + 1)
    assert len({*found, reddit.identity}) == 5
    assert all(len(each) == 64 for each in found)
