"""Predictions as a file: an archive of NumPy arrays, a graph a file, named after it.

========  ==============  ==================================================================
format    int16           1
graph     <U16            first digits of the graph's fingerprint
seeds     int16 [S]       of the divisions, ascending
split     <U16 [S]        digest of the split and partition of each seed
y_pred    int16 [S, n]    class of each node in the order of the graph; −1: not predicted
y_score   float32 [S, n]  only where nodes are ranked: the larger, the more probable is class 1
========  ==============  ==================================================================
"""

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from feddep.judging.divisions import write_npz
from feddep.utils.errors import DataError, one_line

FORMAT = 1
MOST_BYTES = 10 * 10**6
"""Of a file."""
MOST_UNPACKED = 10 * MOST_BYTES
MEMBERS = {
    "format": ("int16", 0),
    "graph": ("<U16", 0),
    "seeds": ("int16", 1),
    "split": ("<U16", 1),
    "y_pred": ("int16", 2),
    "y_score": ("float32", 2),
}
"""Type and number of dimensions of each array."""
Arrays = Mapping[str, np.ndarray]
"""The content of a file."""


def read(file: Path) -> Arrays:
    """Read a file that anybody may have written; nothing in it is executed.

    Raises:
        DataError: if it is missing, too large, damaged, or of another form.
    """
    if not file.is_file() or file.stat().st_size > MOST_BYTES:
        found = f"{file.stat().st_size:,} bytes" if file.is_file() else "no file"
        raise DataError(f"{file} is {found}; a file of at most {MOST_BYTES:,} bytes is needed")
    try:
        return _arrays(file.read_bytes())
    except Exception as error:  # of a damaged archive NumPy raises many kinds
        raise DataError(f"{file} is no file of predictions: {one_line(str(error))}") from None


def identity(file: Path) -> dict[str, str]:
    """What a row says of a file (:data:`feddep.judging.rows.File`). Errors are those of
    :func:`read`.
    """
    graph, content = str(read(file)["graph"]), file.read_bytes()
    return {"path": file.name, "sha256": hashlib.sha256(content).hexdigest(), "graph": graph}


def _arrays(content: bytes) -> Arrays:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
    names, needed = [each.filename for each in members], [f"{name}.npy" for name in MEMBERS]
    if sorted(names) not in (sorted(needed), sorted(needed[:-1])):
        raise ValueError(f"it has {', '.join(names)}; {', '.join(needed)} are needed, each once")
    if (unpacked := sum(each.file_size for each in members)) > MOST_UNPACKED:
        raise ValueError(f"it unpacks to {unpacked:,} bytes; {MOST_UNPACKED:,} are allowed")
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays: dict[str, np.ndarray] = dict(archive)
    for name, array in arrays.items():
        kind, dimensions = MEMBERS[name]
        if array.dtype != np.dtype(kind) or array.ndim != dimensions:
            raise ValueError(
                f"{name} has type {array.dtype.str} and shape {array.shape}; {np.dtype(kind).str} "
                f"with {dimensions} dimensions is needed"
            )
    shapes = {name: array.shape for name, array in arrays.items() if array.ndim}
    if len({len(arrays[name]) for name in shapes}) > 1 or len({*shapes.values()}) > 2:
        raise ValueError(f"its arrays have the shapes {shapes}; rows of a seed each are needed")
    if arrays["format"] != FORMAT:
        raise ValueError(f"its format is {arrays['format']}; {FORMAT} is allowed")
    return arrays


def check(
    file: Path, arrays: Arrays, row: int, division: Mapping[str, Any], ranked: bool = False
) -> None:
    """Make sure that the predictions for a seed are of a division.

    Args:
        file: where they are, for sentences.
        arrays: the predictions.
        row: which of their seeds.
        division: as :func:`feddep.judging.divisions.describe` has it.
        ranked: whether scores are needed, too.

    Raises:
        DataError: if they are of another, or a validation or test node lacks a class or a score.
    """
    where, given = f"{file}, seed {arrays['seeds'][row]}", arrays["y_pred"][row]
    of = (str(arrays["graph"]), str(arrays["split"][row]), len(given))
    needed = (str(division["graph"]), str(division["digest"]), len(division["client"]))
    if of != needed:
        raise DataError(
            f"{where}: graph, division and number of nodes are {', '.join(map(str, of))}; "
            f"{', '.join(map(str, needed))} are needed, as feddep export writes them"
        )
    nodes = np.concatenate([division["val"], division["test"]])
    wrong = nodes[(given[nodes] < 0) | (given[nodes] >= division["classes"])]
    if len(wrong):
        raise DataError(
            f"{where}: node {wrong[0]} has the class {given[wrong[0]]}; validation and test nodes "
            f"need one from 0 to {division['classes'] - 1}"
        )
    if ranked != ("y_score" in arrays):
        raise DataError(f"{where}: y_score is {'missing' if ranked else 'of no use on this graph'}")
    if ranked and not np.isfinite(arrays["y_score"][row, nodes]).all():
        raise DataError(f"{where}: a score of validation or test nodes is not finite")


def save(
    target: str | Path,
    divisions: str | Path,
    predicted: Mapping[int, Any],
    scores: Mapping[int, Any] | None = None,
) -> None:
    """Write predictions of other code for ``feddep judge``.

    Args:
        target: the file, named after its graph, such as ``predictions/cora.npz``.
        divisions: the folder of the graph that ``feddep export`` wrote.
        predicted: for each seed the class of each node in the order of the graph; integers, shape
            (n,); validation and test nodes need one, others may have −1.
        scores: where a study ranks nodes of two classes, for each seed the larger, the more
            probable is class 1; shape (n,).

    Raises:
        DataError: if a division is missing, or predictions are of another shape or type or lack a
            node.
    """
    seeds, target = sorted(predicted), Path(target)
    files = [Path(divisions, f"{seed}.npz") for seed in seeds]
    if not files or not all(file.is_file() for file in files):
        raise DataError(f"{divisions} has no divisions of seeds {seeds}; feddep export writes them")
    known = [dict(np.load(file, allow_pickle=False)) for file in files]
    arrays = {
        "format": np.array(FORMAT),
        "graph": known[0]["graph"],
        "seeds": np.array(seeds),
        "split": np.stack([division["digest"] for division in known]),
        "y_pred": _rows("predicted", predicted, seeds, "iu"),
        **({"y_score": _rows("scores", scores, seeds, "f")} if scores else {}),
    }
    for row, division in enumerate(known):
        check(target, arrays, row, division, bool(scores))
    write_npz(target, {name: array.astype(MEMBERS[name][0]) for name, array in arrays.items()})


def _rows(name: str, given: Mapping[int, Any], seeds: list[int], kinds: str) -> np.ndarray:
    """A number a node for each seed, shape (S, n)."""
    rows = [np.asarray(given.get(seed)) for seed in seeds]
    for seed, row in zip(seeds, rows, strict=True):
        if row.ndim != 1 or row.dtype.kind not in kinds or len(row) != len(rows[0]):
            raise DataError(
                f"{name}[{seed}] has type {row.dtype} and shape {row.shape}; "
                f"{'a float' if kinds == 'f' else 'an integer'} for each node is needed"
            )
    return np.stack(rows)
