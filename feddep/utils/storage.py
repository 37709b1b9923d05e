"""Files that appear whole or not at all: written beside the target, then renamed over it."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from feddep.utils.errors import DataError


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """Yield a scratch path beside ``target``; on success it replaces ``target``, on error it is removed."""
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=target.suffix)
    os.close(handle)
    scratch = Path(name)
    try:
        yield scratch
        umask = os.umask(0)
        os.umask(umask)
        scratch.chmod(0o666 & ~umask)  # mkstemp makes private files; results are meant to be read
        scratch.replace(target)
    except OSError as error:
        error.filename, error.filename2 = str(target), None  # not the scratch path; where the disk is full there is none
        raise
    finally:
        scratch.unlink(missing_ok=True)


def read_text(path: str | Path) -> str:
    """Read a text in UTF-8.

    Raises:
        DataError: if it is none.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no text in UTF-8 ({error})") from None


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
    except (ValueError, RecursionError) as error:  # also of text that is no UTF-8, or nested thousands deep
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
