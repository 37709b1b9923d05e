"""A client between two rounds, on its own disk: Flower starts a process for each message, and any of them may be killed.

What a round leaves is one file, written whole or not at all, with the answer to its message.  So a message that comes twice
gets the same answer twice, and a client that is started anew goes on with the very draws that it would have made.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch

from feddep.deployment import DeploymentError
from feddep.federation.boundary import Payload
from feddep.federation.client import REPORTS
from feddep.utils.errors import DataError
from feddep.utils.files import read_arrays, write_arrays

Answer = dict[str, Payload]
"""What a client sends in a round: payloads by kind."""

_CLIENT = "client"


def save(folder: Path, run: str, number: int, client: Any, answer: Answer) -> None:
    """Keep a client as round ``number`` of a run left it, with its answer; forget what is older than the round before.

    What is kept may be anything that can be pickled: before the first round, −1, there is no client yet.
    """
    arrays = {f"{kind}/{name}": tensor.numpy() for kind, payload in answer.items() for name, tensor in payload.items()}
    arrays[_CLIENT] = np.frombuffer(pickle.dumps(client), dtype=np.uint8)
    write_arrays(_path(folder, number), arrays, _key(run, number))
    _path(folder, number - 2).unlink(missing_ok=True)


def client_after(folder: Path, run: str, number: int) -> Any:
    """The client as round ``number`` left it.  The file is the client's own; what is unpickled came from no one else.

    Raises:
        DeploymentError: if there is no such state, or it is damaged or of another run.
    """
    try:
        return pickle.loads(read_arrays(_path(folder, number), _key(run, number))[_CLIENT].tobytes())
    except DataError as error:
        raise DeploymentError(f"the client cannot go on after round {number}: {error}") from None


def answer_of(folder: Path, run: str, number: int) -> Answer | None:
    """The answer that was given in round ``number`` of a run; None if there was none yet."""
    try:
        arrays = read_arrays(_path(folder, number), _key(run, number))
    except DataError:
        return None
    answer: Answer = {}
    for path, array in arrays.items():
        if path != _CLIENT:
            kind, _, name = path.partition("/")
            tensor = torch.from_numpy(array)
            answer.setdefault(kind, {})[name] = tensor.reshape(()) if kind in REPORTS else tensor  # the file has no shape ()
    return answer


def _path(folder: Path, number: int) -> Path:
    return folder / "state" / f"round{number}.safetensors"


def _key(run: str, number: int) -> str:
    return f"{run}/round{number}"
