"""Reading and writing files: a file appears whole or not at all, and one that cannot be used is an
error in one sentence.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from feddep.utils.errors import DataError


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """A temporary path beside ``target``, which it replaces at the end; on an error it is removed.

    Raises:
        DataError: if something else than a file is there, such as a folder, a device or a pipe.
    """
    target = Path(target)
    check_replaceable(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{target.suffix}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made if it is not there; wait where another process holds
    it.  A process that ends in any way gives it back.
    """
    import fcntl  # not on Windows, where the rest of the library works

    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def check_replaceable(target: Path, inputs: Iterable[Path] = ()) -> None:
    """Make sure that a file may be written.

    Raises:
        DataError: if something else than a file is there, such as a folder, a device or a pipe, or
            it is one of the inputs, or in a folder of them.
    """
    if target.exists() and not target.is_file():
        raise DataError(f"{target} is there and is no file; nothing but a file is replaced")
    for each in inputs if target.exists() else ():
        if any(
            target.samefile(file)
            for file in (each.rglob("*") if each.is_dir() else [each])
            if file.exists()
        ):
            raise DataError(
                f"{target} is to be written, but it is read as {each}; the output needs a path "
                "of its own"
            )


def write_text(target: str | Path, text: str) -> None:
    """Write ``text`` as UTF-8 with Unix line ends."""
    with atomic_path(target) as path:
        path.write_text(text, encoding="utf-8", newline="\n")


def canonical_json(value: Any) -> str:
    """The one JSON text of a value, which keys are computed from: sorted keys, no white space, no
    NaN.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def write_json(target: str | Path, value: Any, key: str | None = None) -> None:
    """Write ``value`` as indented JSON with sorted keys.

    Args:
        target: the file.
        value: what to write; an object, where a key is given.
        key: content key, which is written into the object together with the digest of the rest.

    Raises:
        ValueError: if a number is NaN or infinite.
    """
    if key is not None:
        value = {**value, "key": key, "sha256": _digest_of_json(value)}
    write_text(target, json.dumps(value, indent=1, sort_keys=True, allow_nan=False) + "\n")


def read_json(path: str | Path, key: str | None = None) -> Any:
    """Read a JSON file.

    Args:
        path: the file.
        key: content key that it must have been written with; it and the digest are checked and left
            out of the object. Nothing is checked if None.

    Raises:
        DataError: if the file is missing, is not JSON, is damaged, or has another key.
    """
    with _readable(path, (ValueError, RecursionError)):
        value = json.loads(Path(path).read_text(encoding="utf-8"))
        if key is None:
            return value
        written = value if isinstance(value, dict) else {}
        content = {name: part for name, part in written.items() if name not in ("key", "sha256")}
        digest = _digest_of_json(content)
    _check(path, key, written.get("key"), written.get("sha256"), digest)
    return content


def write_arrays(target: str | Path, arrays: Mapping[str, np.ndarray], key: str = "") -> None:
    """Write named arrays as safetensors, with ``key`` and the digest of the arrays in the metadata:
    in one entry, as the order of several is random.
    """
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with atomic_path(target) as path:
        save_file(whole, path, {"key": f"{key} {_digest_of_arrays(whole)}"})


def read_arrays(
    path: str | Path, key: str | None = None, framework: str = "numpy"
) -> dict[str, Any]:
    """Read the arrays of a safetensors file.

    Args:
        path: the file.
        key: the key that it must have been written with; not checked if None.
        framework: ``numpy``, or ``pt`` for PyTorch's tensors, which are the file's pages and not
            copies of them.

    Raises:
        DataError: if the file is missing, damaged, or has another key.
    """
    with _readable(path, (SafetensorError,)), safe_open(path, framework) as file:
        names, written = file.keys(), (file.metadata() or {}).get("key", "")
        arrays = {name: file.get_tensor(name) for name in names}
        digest = _digest_of_arrays(arrays)
    found, _, sealed = written.partition(" ")
    _check(path, key, found, sealed, digest)
    return arrays


def _digest_of_json(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _digest_of_arrays(arrays: Mapping[str, Any]) -> str:
    """The SHA-256 of the names, types, shapes and values of contiguous arrays or tensors."""
    digest = hashlib.sha256()
    for name, array in sorted((name, np.asarray(each)) for name, each in arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


@contextmanager
def _readable(path: str | Path, damage: tuple[type[Exception], ...]) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path} is missing; run the stage that writes it") from None
    except damage as error:
        raise DataError(
            f"{path} is damaged ({error}); delete it and run the stage that writes it"
        ) from None


def _check(
    path: str | Path, key: str | None, found: str | None, sealed: str | None, digest: str
) -> None:
    """Compare the key that a file was written with to the one that is asked for, and the digest to
    that of its content.
    """
    if not sealed:
        problem = "was written without a digest of its content, as by earlier versions"
    elif sealed != digest:
        problem = "is damaged (its content does not have the digest that it was written with)"
    elif key is not None and found != key:
        problem = f"has the key {found or 'none'} where {key} is asked for"
    else:
        return
    raise DataError(f"{path} {problem}; delete it and run the stage that writes it")
