"""Raw files on disk: from the first source that has them, verified, all of them or none."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from feddep.datasets.checksums import objection, sha256
from feddep.datasets.registry import Dataset, find
from feddep.datasets.sources import Context, Release, Source, UnavailableError
from feddep.errors import DataError
from feddep.storage import read_json, write_json

MANIFEST = "MANIFEST.json"


def download(name: str, directory: str | Path, mirror: str | Path | None = None) -> None:
    """Put the verified raw files of a dataset into ``directory``, with a manifest that says where they came from.

    The dataset's sources are tried in order.  The directory appears when all files are there and verified; one that is
    complete already is left as it is.  Downloads that broke off wait in ``.partial`` beside it to be resumed.

    Args:
        name: a dataset of the registry.
        directory: where the files go.
        mirror: a folder that holds raw files, tried first.

    Raises:
        ConfigError: if the registry has no such dataset.
        DataError: if no source gives the published files; it names each source and what was wrong with it.
    """
    dataset, directory = find(name), Path(directory)
    if (directory / MANIFEST).is_file() and any(_complete(release, directory) for release in dataset.releases):
        return
    strangers = _names(directory) - {MANIFEST, *(file.name for release in dataset.releases for file in release.files)}
    if strangers:
        raise DataError(f"{directory} holds {sorted(strangers)[0]}, which is no raw file of {name}: give a folder of its own")
    context = Context(Path(mirror).expanduser() if mirror else None, directory.parent / ".partial" / name)
    failures: list[str] = []
    try:
        for source in dataset.sources:
            if failures:
                print(f"{name}: {failures[-1]}; trying {source.label()}", file=sys.stderr)
            try:
                with _whole_directory(directory) as scratch:
                    _fetch(source, scratch, context)
                    _write_manifest(scratch, dataset, source, context)
                shutil.rmtree(context.cache, ignore_errors=True)
                return
            except (UnavailableError, OSError) as error:
                failures.append(f"{source.label()}: {error}")
    finally:
        _remove_if_empty(context.cache, context.cache.parent)
    raise DataError(
        f"no source has the published raw files of {name} ({'; '.join(failures)}): connect to a network, or set data.mirror or "
        f"FEDDEP_DATA_MIRROR to a folder that holds {', '.join(file.name for file in dataset.releases[0].files)}"
    )


def origin(directory: str | Path) -> str:
    """Where the raw files in ``directory`` came from, as the manifest tells."""
    path = Path(directory) / MANIFEST
    return str(read_json(path)["source"]) if path.is_file() else "placed by hand"


def _names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} if directory.is_dir() else set()


def _remove_if_empty(*folders: Path) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _fetch(source: Source, into: Path, context: Context) -> None:
    source.fetch(into, context)
    problems = [problem for file in source.release.files if (problem := objection(into / file.name, file))]
    if problems:
        raise UnavailableError("; ".join(problems))


def _complete(release: Release, directory: Path) -> bool:
    return not any(objection(directory / file.name, file) for file in release.files)


def _write_manifest(directory: Path, dataset: Dataset, source: Source, context: Context) -> None:
    files = {file.name: sha256(directory / file.name) for file in source.release.files}
    manifest = {"dataset": dataset.name, "source": source.label(), "place": source.place(context), "sha256": files}
    write_json(directory / MANIFEST, manifest)


@contextmanager
def _whole_directory(target: Path) -> Iterator[Path]:
    """Yield a scratch folder beside ``target``; on success it takes the place of ``target``, on error it is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        yield scratch
        umask = os.umask(0)
        os.umask(umask)
        scratch.chmod(0o777 & ~umask)  # mkdtemp makes private folders
        shutil.rmtree(target, ignore_errors=True)
        scratch.replace(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
