"""Lists of checksums in the format of ``sha256sum``, by which pages that people read are known to be what was written."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from feddep.utils.storage import write_text


def write_list(target: str | Path, files: Iterable[str | Path]) -> None:
    """Write the SHA-256 of each file, a line each, with its path as seen from the list, and their number as a comment."""
    target = Path(target)
    lines = [f"{_sha256(Path(file))}  {Path(os.path.relpath(file, target.parent)).as_posix()}\n" for file in files]
    write_text(target, "".join([*lines, _end(len(lines))]))


def find_mismatch(path: str | Path) -> str | None:
    """One sentence for the first file that is not what a list says, or for a list that is none; None if all are."""
    path = Path(path)
    try:
        *lines, end = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if end != _end(len(lines)):
            return f"{path} is cut off or damaged"
        for digest, name in (line.removesuffix("\n").split("  ", 1) for line in lines):
            if _sha256(path.parent / name) != digest:
                return f"{path.parent / name} is not what {path.name} says"
    except (OSError, ValueError) as error:  # a file is gone; a line is not of this form, or not text
        return f"{path} is damaged or names a file that is gone ({error})"
    return None


def _end(files: int) -> str:
    return f"# {files} files\n"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
