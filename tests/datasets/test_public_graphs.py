"""The registry of public graphs is complete."""

import itertools
import re
from dataclasses import replace

import pytest

from feddep.datasets import public_graphs
from feddep.datasets.formats import READERS
from feddep.datasets.public_graphs import REGISTRY, Dataset, find


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
