import pytest
import torch

from feddep.federation.boundary import Boundary, BoundaryError, numbers


def test_what_is_declared_passes_and_is_counted():
    boundary = Boundary({"model": {"w": (2, 3)}, "report": {"loss": ()}})
    boundary.send(1, "down", "model", {"w": torch.zeros(2, 3)})
    boundary.send(0, "up", "model", {"w": torch.zeros(2, 3)})
    boundary.send(0, "up", "model", {"w": torch.zeros(2, 3)})
    boundary.send(0, "up", "report", numbers(loss=0.5))
    assert boundary.communication.rows() == [
        {"client": 0, "direction": "up", "kind": "model", "messages": 2, "bytes": 48},
        {"client": 0, "direction": "up", "kind": "report", "messages": 1, "bytes": 8},
        {"client": 1, "direction": "down", "kind": "model", "messages": 1, "bytes": 24},
    ]


@pytest.mark.parametrize(
    ("kind", "payload", "reason"),
    [
        ("features", {"x": torch.zeros(2, 3)}, "kind 'features' may not cross"),
        ("model", {"w": torch.zeros(2, 4)}, "may hold"),
        ("model", {"w": torch.zeros(2, 3), "x": torch.zeros(1)}, "may hold"),
        ("model", {}, "may hold"),
        ("model", {"w": torch.zeros(2, 3, dtype=torch.int64)}, "only floating-point"),
    ],
)
def test_all_else_is_refused_and_not_counted(kind, payload, reason):
    boundary = Boundary({"model": {"w": (2, 3)}})
    with pytest.raises(BoundaryError, match=reason):
        boundary.send(0, "up", kind, payload)
    assert boundary.communication.rows() == []


def test_the_receiver_gets_a_copy_without_history():
    boundary = Boundary({"model": {"w": (2,)}})
    sent = torch.ones(2, requires_grad=True)
    received = boundary.send(0, "up", "model", {"w": sent * 1})["w"]
    received.zero_()
    assert sent.tolist() == [1, 1]
    assert not received.requires_grad
