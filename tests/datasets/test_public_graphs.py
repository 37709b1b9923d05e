"""The registry of public graphs is complete."""

import itertools
import re
from dataclasses import replace

import pytest

from feddep.datasets import public_graphs
from feddep.datasets.formats import READERS
from feddep.datasets.public_graphs import REGISTRY, Dataset, find
from graphs import DATASETS_TABLE


@pytest.mark.parametrize("dataset", REGISTRY.values(), ids=REGISTRY)
def test_every_entry_can_be_fetched_and_verified(dataset: Dataset) -> None:
    assert REGISTRY[dataset.name] is dataset
    assert re.fullmatch("https?://.+/", dataset.url)
    assert dataset.large == (dataset.nodes > 150_000)
    for release in dataset.releases:
        assert release.format in READERS
        assert len(set(release.class_names)) in (0, dataset.classes)
        assert len(release.files) % max(1, len(dataset.clients)) == 0
        assert len({frozenset(names) for names in dataset.clients.values()}) <= 1
        assert {len(names) for names in dataset.clients.values()} <= {0, dataset.classes}
        assert release.files.keys() >= dataset.paths.keys()
        # Only of the large ones no checksum is known.
        assert all(release.files.values()) != dataset.large
        for checksum in itertools.chain(*release.files.values()):
            kind, value = checksum.split(":")
            assert len(value) == {"sha256": 64, "git-blob": 40}[kind]
            assert int(value, 16)


def test_the_table_of_the_page_is_that_of_the_registry() -> None:
    """What is measured in it is compared with the graphs where they are at hand, in
    test_fetching.py.
    """
    rows = [row for row in DATASETS_TABLE if row[0] in REGISTRY and len(row) == 8]
    assert [row[0] for row in rows] == list(REGISTRY)
    for name, family, *sizes, homophily, _ in rows:
        dataset = REGISTRY[name]
        assert family == dataset.family
        assert [int(size) for size in sizes] == [
            dataset.nodes,
            dataset.edges,
            dataset.features,
            dataset.classes,
        ]
        assert dataset.fingerprint or not homophily
    owners = [row[:2] for row in DATASETS_TABLE if row[0] in REGISTRY and len(row) == 5]
    assert owners == [
        [name, client] for name, dataset in REGISTRY.items() for client in dataset.clients
    ]


def test_a_fingerprint_identifies_a_dataset_or_else_its_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert find("cora").identity == find("cora").fingerprint
    reddit = find("reddit")
    others = (
        replace(reddit, name="other"),
        replace(reddit, release=replace(reddit.release, files={"other.zip": []})),
    )
    found = [each.identity for each in (reddit, *others, replace(reddit, fingerprint="0" * 64))]
    monkeypatch.setattr(public_graphs, "REVISION", public_graphs.REVISION + 1)
    assert len({*found, reddit.identity}) == 5
    assert all(len(each) == 64 for each in found)
