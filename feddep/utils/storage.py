"""Files that appear whole or not at all: written beside the target, then renamed over it.

Arrays and results carry a digest: the SHA-256 of the file with zeros in its place.  Whoever reads them checks it, so that
a damaged or edited file is an error and never a number.  They also carry the key of what they hold, where there is one.
"""

import glob
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save

from feddep.utils.errors import DataError

try:
    import fcntl
except ImportError:  # not a POSIX system: what killed processes leave stays
    fcntl = None  # type: ignore[assignment]


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """Yield a scratch path beside ``target``; on success it replaces ``target``, on error it is removed.

    A scratch file that a killed process has left is removed when the same target is written again.
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


def write_result(target: str | Path, value: Mapping[str, Any]) -> None:
    """Write ``value`` as :func:`write_json` does, with a digest of the file under the key ``digest``.

    Raises:
        ValueError: if a number is NaN or infinite.
    """
    text = json.dumps({**value, "digest": _BLANK}, indent=1, sort_keys=True, allow_nan=False) + "\n"
    with atomic_path(target) as scratch:
        scratch.write_bytes(_sealed(text.encode(), _IN_JSON))


def read_result(path: str | Path, key: str | None = None) -> dict[str, Any]:
    """Read what :func:`write_result` wrote, without the digest.

    Args:
        path: the file.
        key: what its ``key`` must be; any without it.

    Raises:
        DataError: if the file is missing, damaged, no result, or has another key.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise DataError(f"{path} holds no result; {_AGAIN}")
    check_digest(path)
    check_key(path, content.get("key"), key)
    return {name: value for name, value in content.items() if name != "digest"}


def write_arrays(target: str | Path, arrays: Mapping[str, np.ndarray], key: str = "") -> None:
    """Write named arrays as safetensors, with a digest of the file and the key of what they are in the metadata.

    Raises:
        DataError: if the file cannot be written, such as on a full disk.
    """
    # One entry, as safetensors gives several in any order, and the same arrays are to have the same bytes.
    metadata = {"feddep": f"digest={_BLANK} key={key}"}
    with atomic_path(target) as scratch:
        try:
            data = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata)
        except SafetensorError as error:
            raise DataError(f"{target} cannot be written: {error}") from None
        scratch.write_bytes(_sealed(data, _IN_ARRAYS))


def read_arrays(path: str | Path, key: str | None = None) -> dict[str, np.ndarray]:
    """Read named arrays that :func:`write_arrays` wrote.

    Args:
        path: the file.
        key: what their key must be; any without it.

    Raises:
        DataError: if the file is missing, damaged, of another format, or has another key.
    """
    try:
        arrays = load_file(path)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; run the stage that writes it") from None
    except SafetensorError as error:
        raise DataError(f"{path} is damaged ({error}); {_AGAIN}") from None
    check_digest(path)
    check_key(path, _key_of_arrays(path), key)
    return arrays


def check_digest(path: str | Path) -> None:
    """Make sure that a file of arrays (``.safetensors``) or a result (``.json``) is what was written.

    Raises:
        DataError: if it has no digest, or another content.
    """
    data = Path(path).read_bytes()
    found = (_IN_ARRAYS if Path(path).suffix == ".safetensors" else _IN_JSON).search(data)
    if found is None:
        raise DataError(f"{path} carries no digest of its content; {_AGAIN}")
    if _digest(data, found).encode() != found[1]:
        raise DataError(f"{path} is damaged: its content is not that of its digest; {_AGAIN}")


def read_key(path: str | Path) -> str | None:
    """The key of a file of arrays or of a result, once its digest is checked; None where it names none.

    Raises:
        DataError: if the file is missing, damaged or of another format.
    """
    if Path(path).suffix != ".safetensors":
        return read_result(path).get("key")
    read_arrays(path)
    return _key_of_arrays(path) or None


def check_key(path: str | Path, found: str | None, key: str | None) -> None:
    """Make sure that a file is what is asked for.

    Raises:
        DataError: if ``key`` is given and the file's key is another.
    """
    if key is not None and found != key:
        present = f"its key is {found[:12]}…" if found else "it has no key"
        raise DataError(
            f"{path} is stale: {present}, but configuration, data and revisions now give {key[:12]}…; "
            "run `snakemake` to make it again"
        )


_BLANK = "0" * 64
_AGAIN = "delete it, or restore it where git has it, and run `snakemake` again"
# Only at the top of a JSON file, where a line is indented by one space; only in the header of safetensors, which comes first.
_IN_JSON = re.compile(rb'^ "digest": "([0-9a-f]{64})"', re.MULTILINE)
_IN_ARRAYS = re.compile(rb'\A.{8}\{"__metadata__":\{"feddep":"digest=([0-9a-f]{64}) key=([^"]*)"', re.DOTALL)


def _digest(data: bytes, found: re.Match[bytes]) -> str:
    """SHA-256 of a file's content with zeros in the place of the digest that was found in it."""
    digest = hashlib.sha256(data[: found.start(1)])
    digest.update(_BLANK.encode())
    digest.update(memoryview(data)[found.end(1) :])
    return digest.hexdigest()


def _sealed(data: bytes, place: re.Pattern[bytes]) -> bytes:
    """The content of a file with its digest in the place of the zeros."""
    found = place.search(data)
    assert found is not None
    return data[: found.start(1)] + _digest(data, found).encode() + data[found.end(1) :]


def _key_of_arrays(path: str | Path) -> str:
    with safe_open(path, framework="numpy") as file:
        return str(file.metadata()["feddep"].partition(" key=")[2])
