"""Raw files on disk: from the first source that has them, verified, all of them or none."""

import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pooch

from feddep.datasets.checksums import mismatch
from feddep.datasets.public_graphs import Dataset, Release, find
from feddep.datasets.sources import Source, UnavailableError, sources
from feddep.utils.errors import DataError
from feddep.utils.storage import read_result, write_result

MANIFEST = "MANIFEST.json"


def download(name: str, directory: str | Path, mirror: str | Path | None = None) -> None:
    """Put the verified raw files of a dataset into ``directory``, with a manifest that says where they came from.

    The dataset's sources are tried in order.  The directory appears when all files are there and verified; one that is
    complete already is left as it is.  Until then verified files wait in a hidden folder beside it, also for the next call.

    Args:
        name: a dataset of the registry.
        directory: where the files go.
        mirror: a folder or http(s) URL of raw files, tried first.

    Raises:
        ConfigError: if the registry has no such dataset.
        DataError: if no source gives the published files; it names each source and what was wrong with it.
    """
    dataset, directory = find(name), Path(directory)
    if (directory / MANIFEST).is_file() and not all(problems(release, directory) for release in dataset.releases):
        return
    _check_replaceable(directory, dataset)
    staging = directory.with_name(f".{directory.name}.partial")
    failures: list[str] = []
    for source in sources(dataset, mirror):
        if failures:
            print(f"{name}: {failures[-1]}; trying {source.label}", file=sys.stderr)
        try:
            staging.mkdir(parents=True, exist_ok=True)
            _fetch(source, staging)
            _publish(source, dataset, staging, directory)
            return
        except (UnavailableError, OSError) as error:
            failures.append(f"{source.label}: {error}")
    with suppress(OSError):  # it holds verified files
        staging.rmdir()
    raise DataError(
        f"no source has the published raw files of {name} ({'; '.join(failures)}): connect to a network, or set data.mirror or "
        f"FEDDEP_DATA_MIRROR to a folder or URL that holds {', '.join(dataset.release.files)}"
    )


def origin(directory: str | Path) -> str:
    """Where the raw files in ``directory`` came from, as the manifest tells."""
    path = Path(directory) / MANIFEST
    return str(read_result(path)["source"]) if path.is_file() else "placed by hand"


def damage(manifest: str | Path) -> str | None:
    """What is wrong with a manifest or with the raw files beside it; None if they are what was downloaded."""
    path = Path(manifest)
    try:
        files = read_result(path)["sha256"]
        wrong = [name for name, digest in files.items() if pooch.file_hash(path.with_name(name)) != digest]
    except (DataError, OSError, AttributeError, KeyError) as error:
        return f"{path} or a file that it names is damaged or gone ({error})"
    return f"{path.with_name(wrong[0])} is not what was downloaded" if wrong else None


def problems(release: Release, directory: Path) -> list[str]:
    """What is wrong with the files of a release in ``directory``; empty if all are there and verified.

    Where the registry knows no checksums, the files must be those that were downloaded.
    """
    found = [mismatch(directory / name, checksums) for name, checksums in release.files.items()]
    if not all(release.files.values()):
        found.append(damage(directory / MANIFEST))
    return [problem for problem in found if problem]


def _check_replaceable(directory: Path, dataset: Dataset) -> None:
    known = {MANIFEST}.union(*(release.files for release in dataset.releases))
    others = {path.name for path in directory.iterdir()} - known if directory.is_dir() else set()
    if others:
        raise DataError(f"{directory} holds {min(others)}, which is no raw file of {dataset.name}: give a folder of its own")


def _fetch(source: Source, staging: Path) -> None:
    """Copy the files that ``staging`` lacks, verifying each; one that is wrong is removed."""
    with source.open() as copy:
        for name, checksums in source.release.files.items():
            path = staging / name
            if not checksums or mismatch(path, checksums):  # without one, nobody knows whether what is there is whole
                copy(name, path)
                if problem := mismatch(path, checksums):
                    path.unlink()
                    raise UnavailableError(problem)


def _publish(source: Source, dataset: Dataset, staging: Path, directory: Path) -> None:
    """Write the manifest and put ``staging`` in the place of ``directory``."""
    for path in staging.iterdir():
        if path.name not in source.release.files:  # of another source
            path.unlink()
    checksums = {name: pooch.file_hash(staging / name) for name in source.release.files}
    manifest = {"dataset": dataset.name, "source": source.label, "place": source.place, "sha256": checksums}
    write_result(staging / MANIFEST, manifest)
    shutil.rmtree(directory, ignore_errors=True)
    staging.replace(directory)
