"""Helpers of the tests of datasets: a server that serves files well or badly, and a small dataset."""

from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from feddep.datasets.public_graphs import Dataset
from feddep.graph.graph import Graph


@dataclass
class Server:
    """Serves ``files`` by path.

    ``faults`` are spent one a download: the number of bytes after which to hang up, or a status to answer.  ``asked`` has the
    paths that a HEAD request asked for, ``sent`` those of GET requests.
    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    faults: list[int | str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        name, head = request.path.lstrip("/"), request.command == "HEAD"
        (self.asked if head else self.sent).append(name)
        fault = self.faults.pop(0) if self.faults and not head else None
        if isinstance(fault, str) or name not in self.files:
            request.send_error(int(fault or 404))
            return
        request.send_response(200)
        request.send_header("Content-Length", str(len(self.files[name])))
        request.end_headers()
        if not head:
            request.wfile.write(self.files[name][:fault])


@dataclass
class Toy:
    """A small dataset: its graph, the folder that holds its one raw file, that file's content, its entry."""

    graph: Graph
    folder: Path
    content: bytes
    dataset: Dataset
