"""How much the resident set of this process grows."""

from collections.abc import Callable
from pathlib import Path


def growth(work: Callable[[], object]) -> float:
    """MiB by which the peak of the resident set during some work is above what it was before; Linux
    only.
    """
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _resident("VmRSS")
    work()
    return _resident("VmHWM") - before


def _resident(field: str) -> float:
    """Resident set of this process, now (VmRSS) or at its peak (VmHWM), in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))
