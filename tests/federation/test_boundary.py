import pytest
import torch

from feddep.federation.boundary import Boundary, BoundaryError, ByClient, numbers


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
        ("features", {"x": torch.zeros(2, 3)}, "kind 'features'"),
        ("model", {"w": torch.zeros(2, 4)}, "may hold"),
        ("model", {"w": torch.zeros(2, 3), "x": torch.zeros(1)}, "may hold"),
        ("model", {}, "may hold"),
        ("model", {"w": torch.zeros(2, 3, dtype=torch.int64)}, "int64"),
        ("model", {"w": torch.zeros(2, 3).to_sparse()}, "sparse_coo"),
        ("model", {"w": torch.zeros(2, 3, device="meta")}, "meta"),
    ],
)
def test_all_else_is_refused_and_not_counted(kind, payload, reason):
    boundary = Boundary({"model": {"w": (2, 3)}})
    with pytest.raises(BoundaryError, match=reason):
        boundary.send(0, "up", kind, payload)
    assert boundary.communication.rows() == []


def test_a_client_s_message_has_the_shapes_of_that_client_in_that_direction():
    sizes = [{"z": (2, 3)}, {"z": (4, 3)}]
    boundary = Boundary({"embeddings": ByClient(up=sizes), "passed on": ByClient(sizes, sizes)})
    two, four = {"z": torch.zeros(2, 3)}, {"z": torch.zeros(4, 3)}
    boundary.send(0, "up", "embeddings", two)
    boundary.send(1, "up", "passed on", four)
    boundary.send(0, "down", "passed on", four, about=1)
    for client, direction, kind, payload, about in (
        (0, "up", "embeddings", four, None),  # the shapes of another client
        (1, "up", "passed on", two, None),
        (0, "down", "passed on", two, 1),
        (0, "down", "passed on", four, None),
        (0, "down", "embeddings", two, None),  # a direction that is not declared
        (2, "up", "embeddings", four, None),  # a client that is not declared
        (0, "up", "embeddings", two, -1),
    ):
        with pytest.raises(BoundaryError):
            boundary.send(client, direction, kind, payload, about)
    assert boundary.communication.rows() == [
        {"client": 0, "direction": "down", "kind": "passed on", "messages": 1, "bytes": 48},
        {"client": 0, "direction": "up", "kind": "embeddings", "messages": 1, "bytes": 24},
        {"client": 1, "direction": "up", "kind": "passed on", "messages": 1, "bytes": 48},
    ]


def test_the_receiver_gets_a_copy_without_history():
    boundary = Boundary({"model": {"w": (2,)}})
    sent = torch.ones(2, requires_grad=True)
    received = boundary.send(0, "up", "model", {"w": sent * 1})["w"]
    received.zero_()
    assert sent.tolist() == [1, 1]
    assert not received.requires_grad
