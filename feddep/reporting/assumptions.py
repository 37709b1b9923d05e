"""What a framework assumes beyond FedAvg, in the words of docs/frameworks.md: the last sentence of its module's docstring."""

import re

from feddep import frameworks

_SENTENCE = re.compile(r"^Assumes: ([^.]+)\.$", re.MULTILINE)

ORACLE = "oracle"
"""The assumption of a framework that is given what no client could know."""


def assumptions(framework: str) -> tuple[str, ...]:
    """What a framework assumes; nothing, if its module says so or does not say.

    Args:
        framework: its name, without what a variant changes.
    """
    said = _SENTENCE.search(frameworks.load(framework).__doc__ or "")
    return () if said is None or said[1] == "nothing" else tuple(said[1].split("; "))
