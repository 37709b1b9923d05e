"""Ends the processes of a federation with the one that has started them, however that ends.

Run as a script with a mark: once its standard input closes, as the system sees to where the process
at the other end is killed, it ends every process that has this mark in its environment.
"""

import sys
import time
from contextlib import suppress

import psutil

MARK = "FEDDEP_FEDERATION"
"""The variable with the mark, which processes hand down to those that they start."""


def end(mark: str) -> None:
    """Kill all processes with this mark, and those that they start meanwhile; asked to end, some
    would wait for others that have ended.
    """
    while processes := marked(mark):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(0.05)


def marked(mark: str) -> list[psutil.Process]:
    """The processes with this mark that run."""
    return [
        process
        for process in psutil.process_iter(["environ"])
        if (process.info["environ"] or {}).get(MARK) == mark
    ]


if __name__ == "__main__":
    sys.stdin.read()
    end(sys.argv[1])
