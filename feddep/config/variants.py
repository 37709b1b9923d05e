"""Variants: a name that spells out how it differs from the entry of that name, such as
``feddep,prototypes=3``.

So a study needs no entry of its own for each of its points, and every result says what it is of.
Names are read where a configuration or a command gives them (:mod:`feddep.config.entries`), and
labels where tables are shown (:mod:`feddep.reporting.labels`).
"""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from feddep.config.sentences import join, show
from feddep.utils.errors import ConfigError


def format_name(name: str, changes: Mapping[str, Any]) -> str:
    """The name of an entry with some of its options changed; numbers, truth values and null as JSON
    writes them.
    """
    texts = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in changes.items()
    }
    return ",".join([name, *(f"{key}={text}" for key, text in texts.items())])


def read(spelled: str) -> tuple[str, dict[str, Any]]:
    """The name of the entry and what is changed.

    Raises:
        ConfigError: if a change is not of the form key=value, or a value has other characters than
            a number or a word.
    """
    name, *parts = spelled.split(",")
    changes = {}
    for part in parts:
        key, sign, text = part.partition("=")
        if not sign or key in changes:
            raise ConfigError(
                f"{join('', spelled)} has {part!r}; after the name each option may be named "
                "once, as key=value"
            )
        if not re.fullmatch(r"[A-Za-z0-9_.+-]+", text):
            raise ConfigError(
                f"{join('', spelled)} has the value {show(text)}; letters, digits and _.+- are "
                "allowed"
            )
        try:
            changes[key] = json.loads(text)
        except (
            ValueError,
            RecursionError,
        ):  # no JSON, or none that Python reads, such as thousands of digits
            changes[key] = text
    return name, changes


def base(spelled: str) -> str:
    """The name of the entry."""
    return spelled.partition(",")[0]


def combinations(options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every choice of one value for each option that is a list of values; what is no list is the
    same in all.
    """
    choices = [value if isinstance(value, list) else [value] for value in options.values()]
    for values in itertools.product(*choices):
        yield dict(zip(options, values, strict=True))
