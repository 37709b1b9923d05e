"""Raw files and the digests that tell whether a file is the published one."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RawFile:
    """A file of a dataset's release.

    Attributes:
        name: file name.
        digests: ``"sha256:…"`` or ``"git-blob:…"``, any one of which the file must have.  Two stand for two encodings of the
            same arrays; that these are the same is checked after parsing, by the graph's fingerprint.
    """

    name: str
    digests: tuple[str, ...]


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def git_blob(path: Path) -> str:
    """The id that git gives a file's content: SHA-1 of ``blob``, the size in bytes, a zero byte and the content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


_DIGESTS: dict[str, Callable[[Path], str]] = {"sha256": sha256, "git-blob": git_blob}


def objection(path: Path, file: RawFile) -> str | None:
    """Why ``path`` is not the published ``file``, or None if it is."""
    if not path.is_file():
        return f"{file.name} is missing"
    for digest in file.digests:
        kind, expected = digest.split(":")
        if _DIGESTS[kind](path) == expected:
            return None
    wanted = " or ".join(f"{digest[:21]}…" for digest in file.digests)
    return f"{file.name} ({path.stat().st_size} bytes, sha256:{sha256(path)[:12]}…) is not the published file ({wanted})"
