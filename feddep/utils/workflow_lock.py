"""Which workflows live.  Each locks a byte of a common file, and the kernel unlocks it when the process ends, in whatever way."""

import json
import os
import platform
import secrets
import sys
import time
from pathlib import Path

from feddep.utils.errors import WorkflowEndedError

try:
    import fcntl
except ImportError:  # not a POSIX system: no workflow is seen to live or to have ended
    fcntl = None  # type: ignore[assignment]

ENVIRONMENT = "FEDDEP_WORKFLOW"
"""The environment variable by which a workflow tells the stages that it starts how to see that it lives, as JSON."""
ENDED = "the workflow that started it has ended, so nothing more is written; start the workflow again to go on"

_BYTES = 1 << 40  # to choose one's byte from; locks may lie beyond the end of a file
_held: int | None = None


def hold(folder: Path) -> bool:
    """Make known to other processes, as long as this one lives, that it runs a workflow, and clear what a killed one left.

    Snakemake's locks in ``folder`` outlive a workflow that is killed.  They are removed, and a line on stderr says so, if no
    other workflow lives in ``folder``.  Locks of the kernel reach other machines on most network file systems; as this cannot
    be relied on, nothing is removed after a workflow of another machine.

    Args:
        folder: ``.snakemake`` in the folder in which the workflow runs.

    Returns:
        Whether no other workflow was found to live; False as well where that cannot be known.
    """
    global _held
    if fcntl is None or _held is not None:
        return False
    path, byte = folder.resolve() / "workflows.lock", secrets.randbelow(_BYTES)
    try:
        # Never closed, nor is the file opened again in this process: either would give the lock away.
        handle = _held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        alone = _lock_all(handle)
        if not alone:
            fcntl.lockf(handle, fcntl.LOCK_EX, 1, byte)
        machines = os.pread(handle, 1 << 20, 0).decode(errors="replace").splitlines()
        if alone:
            locks = sorted((folder / "locks").glob("*.lock"))
            if not (locks and any(_is_other(machine) for machine in machines)):
                _clear(locks)
                os.ftruncate(handle, 0)
                machines = []
        if _machine() not in machines:
            os.write(handle, f"{_machine()}\n".encode())
            os.fsync(handle)
        if alone:
            fcntl.lockf(handle, fcntl.LOCK_UN, byte, 0)
            fcntl.lockf(handle, fcntl.LOCK_UN, 0, byte + 1)
    except OSError:  # a file system without locks, or a folder of somebody else
        return False
    os.environ[ENVIRONMENT] = json.dumps({"machine": _machine(), "file": str(path), "byte": byte})
    return alone


def _lock_all(handle: int) -> bool:
    """Take the lock on every byte, unless another workflow holds one; a stage that looks at one holds it for an instant."""
    for attempt in range(3):
        time.sleep(0.05 * attempt)
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except (BlockingIOError, PermissionError):
            pass
    return False


def _clear(locks: list[Path]) -> None:
    for lock in locks:
        lock.unlink(missing_ok=True)
    if locks:
        print(
            "feddep: the workflow that locked this folder was killed; its lock is removed and its work goes on", file=sys.stderr
        )


def _machine() -> str:
    """Name of this machine, and of its time since it was started: containers keep the second, and a restart the first."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{platform.node()} {boot.read_text().strip() if boot.exists() else ''}".strip()


def _is_other(machine: str) -> bool:
    return not set(machine.split()) & set(_machine().split())


def ended() -> bool:
    """Whether the workflow that started this stage is gone; False without one, or if it runs on another machine."""
    told = os.environ.get(ENVIRONMENT)
    if fcntl is None or told is None or _held is not None:
        return False
    workflow = json.loads(told)
    if workflow["machine"] != _machine():
        return False
    try:
        handle = os.open(workflow["file"], os.O_RDONLY)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.lockf(handle, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, workflow["byte"])
        return True
    except OSError:  # the workflow holds it
        return False
    finally:
        os.close(handle)


def check() -> None:
    """Make sure that the workflow that started this stage lives, so that no stage writes beside the next workflow.

    Raises:
        WorkflowEndedError: if it has ended.
    """
    if ended():
        raise WorkflowEndedError(ENDED)
