"""Lists of checksums in the format of ``sha256sum``, by which pages that people read are known to be what was written."""

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from feddep.utils.storage import write_text

_END = re.compile(r"# (\d+) files(?:, key (\w+))?\n")


def write_list(target: str | Path, files: Iterable[str | Path], key: str | None = None) -> None:
    """Write the SHA-256 of each file, a line each, with its path as seen from the list; as a comment their number and ``key``.

    ``key`` is a content key of what the files show, for pages that are known by one.
    """
    target = Path(target)
    lines = [f"{_sha256(Path(file))}  {Path(os.path.relpath(file, target.parent)).as_posix()}\n" for file in files]
    end = f"# {len(lines)} files" + (f", key {key}" if key else "")
    write_text(target, "".join([*lines, end, "\n"]))


def find_mismatch(path: str | Path, key: str | None = None) -> str | None:
    """One sentence for the first file that is not what a list says, or for a list that is none; None if all are.

    With ``key``, also for a list that has another key, or none.
    """
    path = Path(path)
    try:
        *lines, end = path.read_text(encoding="utf-8").splitlines(keepends=True)
        found = _END.fullmatch(end)
        if found is None or int(found[1]) != len(lines):
            return f"{path} is cut off or damaged"
        if key is not None and found[2] != key:
            return f"{path} lists files that show something else than the configuration asks for"
        for digest, name in (line.removesuffix("\n").split("  ", 1) for line in lines):
            if _sha256(path.parent / name) != digest:
                return f"{path.parent / name} is not what {path.name} says"
    except (OSError, ValueError) as error:  # a file is gone; a line is not of this form, or not text
        return f"{path} is damaged or names a file that is gone ({error})"
    return None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
