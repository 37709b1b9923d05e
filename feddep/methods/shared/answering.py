"""The messages by which owners answer for their nodes: up to the server, and down to the clients that are joined to these."""

from collections.abc import Sequence

from feddep.federation.boundary import Schema
from feddep.methods.shared.cross_edges import CrossEdges
from feddep.methods.shared.routing import name_kinds


def answers_of(client: int) -> str:
    """The kind of message that carries the answers for a client's own nodes to the server."""
    return f"answers of client {client}"


def answers_for(client: int) -> str:
    """The kind of message that carries the answers that a client asked for."""
    return f"answers for client {client}"


def answer_kinds(edges: Sequence[CrossEdges], classes: int) -> dict[str, Schema]:
    """The messages of asking and answering."""
    kinds = name_kinds(edges)
    for i, own in enumerate(edges):
        kinds[answers_of(i)] = {"answers": (len(own.endpoints), classes)}
        kinds[answers_for(i)] = {"answers": (len(own.outside), classes)}
    return kinds
