"""The GPUs of a machine: how many there are, and which of them a job computes on."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHOSEN = "CUDA_VISIBLE_DEVICES"
"""The environment variable that says which GPUs a process sees. A cluster's scheduler sets it."""


def count() -> int:
    """Number of GPUs to choose from: those that ``nvidia-smi`` lists, or 1 where the environment
    has chosen.
    """
    if shutil.which("nvidia-smi") is None:
        return 0
    if CHOSEN in os.environ:
        return 1
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
    return len(re.findall(r"^GPU \d", listed, re.MULTILINE))


@contextmanager
def assigned(folder: Path, trainings: int) -> Iterator[str | None]:
    """Let this process see one GPU, which no more than so many trainings share; wait while all GPUs
    are taken.  Nothing is done where there is no GPU or the environment has chosen.

    A place on a GPU is a file with a lock of the kernel, which ends with the process however it
    ends.

    Args:
        folder: where these files are; it is made if it is not there.
        trainings: how many may compute on a GPU at a time.

    Yields:
        the GPU as CUDA_VISIBLE_DEVICES has it; None where there is none.
    """
    if CHOSEN in os.environ or not (number := count()):
        yield os.environ.get(CHOSEN)
        return
    import fcntl  # not on Windows, where the rest of the library works

    folder.mkdir(parents=True, exist_ok=True)
    while True:
        # Every GPU has one training before any has a second.
        for place, gpu in ((place, gpu) for place in range(trainings) for gpu in range(number)):
            with (folder / f"{gpu}-{place}.lock").open("w") as handle:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                os.environ[CHOSEN] = str(gpu)
                try:
                    yield str(gpu)
                finally:
                    del os.environ[CHOSEN]
                return
        time.sleep(0.2)
