"""Files that appear whole or not at all: written beside the target, then renamed over it."""

import glob
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from feddep.utils import workflow_lock
from feddep.utils.errors import DataError

try:
    import fcntl
except ImportError:  # not a POSIX system: what killed processes leave stays
    fcntl = None  # type: ignore[assignment]


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """Yield a scratch path beside ``target``; on success it replaces ``target``, on error it is removed.

    A scratch file that a killed process has left is removed when the same target is written again.

    Raises:
        WorkflowEndedError: at the end, if the workflow that started this process is gone.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(target)
    handle, scratch = _new_scratch(target)
    try:
        yield scratch
        umask = os.umask(0)
        os.umask(umask)
        scratch.chmod(0o666 & ~umask)  # mkstemp makes private files; results are meant to be read
        os.fsync(handle)  # so that after a power loss there is no empty file under the name
        workflow_lock.check()
        scratch.replace(target)
    except OSError as error:
        error.filename, error.filename2 = str(target), None  # not the scratch path; where the disk is full there is none
        raise
    finally:
        scratch.unlink(missing_ok=True)
        os.close(handle)


def _new_scratch(target: Path) -> tuple[int, Path]:
    """A file beside ``target``, open and locked, so that other processes see that its writer lives."""
    while True:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=target.suffix)
        with suppress(OSError):  # a file system without locks
            _lock(handle, wait=True)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # taken for a leftover before it was locked


def _remove_leftovers(target: Path) -> None:
    """Remove scratch files of ``target`` whose writers are gone."""
    for leftover in target.parent.glob(f".{glob.escape(target.name)}.{'?' * 8}{glob.escape(target.suffix)}"):
        with suppress(OSError), leftover.open("rb+") as file:  # locked, or removed meanwhile
            if _lock(file.fileno()):
                leftover.unlink()


def _lock(handle: int, wait: bool = False) -> bool:
    """Lock an open file until it is closed; False where there are no such locks."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    return fcntl is not None


def write_text(target: str | Path, text: str) -> None:
    """Write ``text`` as UTF-8 with Unix line ends."""
    with atomic_path(target) as scratch:
        scratch.write_text(text, encoding="utf-8", newline="\n")


def canonical_json(value: Any) -> str:
    """The one spelling of a JSON value that keys are computed from: sorted keys, no white space, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def write_json(target: str | Path, value: Any) -> None:
    """Write ``value`` as indented JSON with sorted keys.

    Raises:
        ValueError: if a number is NaN or infinite; a result that is not a number is not a result.
    """
    write_text(target, json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: str | Path) -> Any:
    """Read a JSON file.

    Raises:
        DataError: if the file is missing or is not JSON.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; run the stage that writes it") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not valid JSON ({error}); delete it and run the stage that writes it") from None


def write_arrays(target: str | Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Write named arrays as safetensors.

    Raises:
        DataError: if the file cannot be written, such as on a full disk.
    """
    with atomic_path(target) as scratch:
        try:
            save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, scratch, dict(metadata or {}))
        except SafetensorError as error:
            raise DataError(f"{target} cannot be written: {error}") from None


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Read named arrays from a safetensors file.

    Raises:
        DataError: if the file is missing, truncated or of another format.
    """
    try:
        return load_file(path)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; run the stage that writes it") from None
    except SafetensorError as error:
        raise DataError(f"{path} is damaged ({error}); delete it and run the stage that writes it") from None
