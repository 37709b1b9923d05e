"""The count of every byte that crosses a client's boundary."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any


class CommunicationLog:
    """Messages and bytes by client, direction and kind.  Bytes are those of the numbers sent,
    without any framing.
    """

    def __init__(self) -> None:
        self._messages: Counter[tuple[int, str, str]] = Counter()
        self._bytes: Counter[tuple[int, str, str]] = Counter()

    def count(self, client: int, direction: str, kind: str, size: int, messages: int = 1) -> None:
        """Note a message, or several, of ``size`` bytes in all."""
        self._messages[client, direction, kind] += messages
        self._bytes[client, direction, kind] += size

    def rows(self) -> list[dict[str, Any]]:
        """One row a client, direction and kind, sorted: ``client, direction, kind, messages,
        bytes``.
        """
        return [
            {
                "client": key[0],
                "direction": key[1],
                "kind": key[2],
                "messages": self._messages[key],
                "bytes": self._bytes[key],
            }
            for key in sorted(self._messages)
        ]


def merged(*counted: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of several communications as one."""
    communication = CommunicationLog()
    for row in itertools.chain(*counted):
        communication.count(
            row["client"], row["direction"], row["kind"], row["bytes"], row["messages"]
        )
    return communication.rows()
