"""Payloads as Flower's records, and back: names, shapes, types and every bit stay."""

from collections.abc import Mapping
from typing import Any

import torch
from flwr.app import ArrayRecord, ConfigRecord, RecordDict

from feddep.federation.boundary import Payload

ROUND = "train.round"
"""The type of the one message of a round: load these weights, validate them, and train from them."""


def pack(payloads: Mapping[str, Payload], facts: Mapping[str, Any]) -> RecordDict:
    """Payloads by kind, and facts about them."""
    records = RecordDict({kind: ArrayRecord(torch_state_dict=dict(payload)) for kind, payload in payloads.items()})
    records["facts"] = ConfigRecord(dict(facts))
    return records


def unpack(records: RecordDict) -> tuple[dict[str, Payload], dict[str, Any]]:
    """Payloads by kind, and the facts about them.

    Raises:
        ValueError: if an array is none, or there are no facts.
    """
    if "facts" not in records.config_records:
        raise ValueError("there are no facts on it")
    payloads = {
        kind: {name: torch.from_numpy(array.numpy().copy()) for name, array in record.items()}
        for kind, record in records.array_records.items()
    }
    return payloads, dict(records.config_records["facts"])
