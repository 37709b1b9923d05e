"""Is a file the published one?"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pooch


def mismatch(path: Path, checksums: Sequence[str]) -> str | None:
    """Why ``path`` is not a file with one of the ``checksums`` (``"sha256:…"`` or ``"git-blob:…"``), or None if it is.

    Where no checksums are given, any file is right.

    The git blob id of a file is the SHA-1 of ``blob``, the size in bytes, a zero byte and the content.
    """
    if not path.is_file():
        return f"{path.name} is missing"
    if not checksums:
        return None
    content, sha256 = path.read_bytes(), pooch.file_hash(path)
    git_blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    if f"sha256:{sha256}" in checksums or f"git-blob:{git_blob}" in checksums:
        return None
    wanted = " or ".join(f"{checksum[:21]}…" for checksum in checksums)
    return f"{path.name} ({len(content)} bytes, sha256:{sha256[:12]}…) is not the published file ({wanted})"
