"""Capture of messages."""

import pytest
import torch

from feddep.audit.capture import Message, capture
from feddep.federation.boundary import Boundary, BoundaryError


def test_messages_are_heard_in_order_and_only_meanwhile():
    heard: list[Message] = []
    boundary = Boundary({"a": {"x": (2,)}})
    boundary.send(0, "up", "a", {"x": torch.zeros(2)})
    with capture(heard.append):
        boundary.send(1, "up", "a", {"x": torch.ones(2)})
        boundary.send(2, "down", "a", {"x": torch.zeros(2)})
        with pytest.raises(BoundaryError):
            boundary.send(3, "up", "b", {"x": torch.zeros(2)})
    boundary.send(4, "up", "a", {"x": torch.zeros(2)})
    assert [(message.client, message.direction, message.kind) for message in heard] == [(1, "up", "a"), (2, "down", "a")]
    assert torch.equal(heard[0].payload["x"], torch.ones(2))
    assert sum(row["messages"] for row in boundary.communication.rows()) == 4


def test_an_error_does_not_leave_a_listener_behind():
    cross = Boundary.send
    with pytest.raises(KeyError), capture(lambda message: None):
        raise KeyError
    assert Boundary.send is cross
