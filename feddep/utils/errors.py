"""Errors that a user can act on: each is one sentence that names what was found and what is
allowed.
"""

import difflib
import os
import warnings
from collections.abc import Iterable
from typing import Any


def one_line(text: str) -> str:
    """Text on one line, as a part of a sentence."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """Text with an escape sequence for each character that cannot be seen."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Those of the known names that are most like a name that is none of them, as a part of a
    sentence.
    """
    names = list(known)
    close = ", ".join(difflib.get_close_matches(name, names, cutoff=0))
    return f"the nearest of {len(names)} are {close}" if names else "there is none"


def out_of_memory(error: Exception) -> str | None:
    """A sentence for an error of Python or PyTorch that says that memory was exhausted; None for
    any other.
    """
    if not isinstance(error, MemoryError) and not any(
        said in str(error) for said in ("allocate memory", "out of memory")
    ):
        return None
    return (
        "memory is exhausted; smaller batch_size, hidden_channels, fanout or graphs need "
        f"less ({one_line(str(error))[:200]})"
    )


class Notice(UserWarning):
    """Something in a user's data that is allowed but easily overlooked."""


def plain_output() -> None:
    """Make what a process prints independent of its environment.

    Notices are sentences, without the line of code that says them, and figures are drawn without a
    display.
    """
    os.environ["MPLBACKEND"] = "agg"
    usual = warnings.formatwarning

    def form(message: Any, category: Any, *place: Any, **line: Any) -> str:
        return (
            f"feddep: {message}\n"
            if issubclass(category, Notice)
            else usual(message, category, *place, **line)
        )

    warnings.formatwarning = form


class FeddepError(Exception):
    """Base of all errors that the command line prints as one sentence, without a traceback and
    without characters that cannot be seen.
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class ConfigError(FeddepError):
    """A configuration key is unknown, missing or has a value that is not allowed."""


class DataError(FeddepError):
    """A data file is missing, corrupt, or not what its checksum or fingerprint promises."""


class PartitionError(FeddepError):
    """A graph cannot be split to the number of clients that was asked for, or clients lack nodes to
    train or validate on.
    """


class DivergenceError(FeddepError):
    """Training led to numbers that are not finite.

    Attributes:
        remedy: what may help, where that is known.
        round: the round that it happened in, from 1, where that is known.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        """Say what is not finite."""
        super().__init__(message)
        self.remedy = remedy
        self.round: int | None = None
