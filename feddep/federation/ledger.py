"""The count of every byte that crosses a client's border."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any


class Ledger:
    """Messages and bytes by client, direction and kind.  Bytes are those of the numbers sent, without any framing."""

    def __init__(self) -> None:
        self._messages: Counter[tuple[int, str, str]] = Counter()
        self._bytes: Counter[tuple[int, str, str]] = Counter()

    def count(self, client: int, direction: str, kind: str, size: int) -> None:
        """Note one message of ``size`` bytes."""
        self._messages[client, direction, kind] += 1
        self._bytes[client, direction, kind] += size

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Note what another ledger has counted."""
        for row in rows:
            key = (row["client"], row["direction"], row["kind"])
            self._messages[key] += row["messages"]
            self._bytes[key] += row["bytes"]

    def rows(self) -> list[dict[str, Any]]:
        """One row a client, direction and kind, sorted: ``client, direction, kind, messages, bytes``."""
        return [
            {"client": key[0], "direction": key[1], "kind": key[2], "messages": self._messages[key], "bytes": self._bytes[key]}
            for key in sorted(self._messages)
        ]


def merged(*counted: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of several ledgers as one."""
    ledger = Ledger()
    for rows in counted:
        ledger.add(rows)
    return ledger.rows()
