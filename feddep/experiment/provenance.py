"""Where a number comes from: versions, machine, commit and time, for the reader; never part of a
key.
"""

import importlib.metadata
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import feddep

_PACKAGES = (
    "numpy",
    "scipy",
    "torch",
    "torch-geometric",
    "networkx",
    "python-louvain",
    "scikit-learn",
    "pandas",
    "snakemake",
)


def environment(device: str, threads: int) -> dict[str, Any]:
    """The machine and versions that a number is of: for the reader, never part of a key.

    Args:
        device: what computed, such as ``"cpu"`` or the name of the GPU.
        threads: number of threads of a training job.

    Returns:
        Versions of Python and of the packages that compute, operating system and processor type,
        the git commit with whether the code differs from it, and the time in UTC. The name of the
        machine and of its user are not in it.
    """
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}{processor()}",
        "packages": {name: importlib.metadata.version(name) for name in _PACKAGES},
        "git": git_state(Path(feddep.__file__).parents[1]),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device,
        "threads": threads,
    }


def processor(file: str = "/proc/cpuinfo") -> str:
    """Vendor, family and model of the processor, by which BLAS chooses its order of sums; nothing
    where the system does not say.
    """
    try:
        lines = [line.partition(":") for line in Path(file).read_text().splitlines()]
    except OSError:
        return ""
    said = {name.strip(): value.strip() for name, _, value in lines}
    known = [said[name] for name in ("vendor_id", "cpu family", "model") if name in said]
    return f" ({' '.join(known)})" if known else ""


def git_state(directory: Path) -> dict[str, Any]:
    """The commit of a checkout, and whether its code or workflow differs from that commit; None
    where there is no git.
    """

    def git(*arguments: str) -> str:
        command = ["git", "--no-optional-locks", "-C", str(directory), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        dirty = bool(git("status", "--porcelain", "--", "feddep", "workflow"))
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": dirty}
