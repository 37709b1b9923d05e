"""Payloads as Flower's records, and back: names, shapes, types and every bit stay."""

from collections.abc import Mapping
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, RecordDict

from feddep.federation.boundary import Payload

ROUND = "train.round"
"""The type of the one message of a round: load these weights, validate them, and train from them.
"""


def pack(payloads: Mapping[str, Payload], facts: Mapping[str, Any]) -> RecordDict:
    """Payloads by name, and facts about them."""
    records = RecordDict({name: ArrayRecord(dict(payload)) for name, payload in payloads.items()})
    records["facts"] = ConfigRecord(dict(facts))
    return records


def unpack(records: RecordDict) -> tuple[dict[str, Payload], dict[str, Any]]:
    """Payloads by name, and the facts about them.

    Raises:
        KeyError: if there are no facts.
    """
    payloads: dict[str, Payload] = {
        name: dict(record.to_torch_state_dict()) for name, record in records.array_records.items()
    }
    return payloads, dict(records.config_records["facts"])
