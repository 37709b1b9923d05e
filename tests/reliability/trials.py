"""How often the tests of this folder try: a few times in `make test`, as often as docs/reliability.md says in `make trials`."""

import os

QUICK_AND_FULL: dict[str, tuple[int, int]] = {
    "configurations": (60, 1000),
    "injections": (7746, 51351),
    "kills": (1, 20),  # of each signal, to the process group and to the scheduler alone
    "mutations": (200, 2000),
    "races": (1, 5),
    "wrong_files": (450, 1541),
}
"""Number of trials by name, in `make test` and in `make trials`."""


def number_of(name: str) -> int:
    """How many trials to make now: all of them if the environment variable FEDDEP_TRIALS is ``full``."""
    quick, full = QUICK_AND_FULL[name]
    return full if os.environ.get("FEDDEP_TRIALS") == "full" else quick
