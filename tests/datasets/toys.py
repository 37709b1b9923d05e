"""What the tests of datasets play with: a server that serves files well or badly, and a small dataset."""

from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from feddep.datasets.registry import Dataset
from feddep.datasets.sources import Release
from feddep.graph import Graph


@dataclass
class Server:
    """Serves ``files`` by path; ``faults`` are spent one a request: bytes after which to hang up, or a status to answer."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    faults: list[int | str] = field(default_factory=list)
    ranges: bool = True
    requests: list[tuple[str, str | None]] = field(default_factory=list)

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        name, wanted = request.path.lstrip("/"), request.headers.get("Range")
        self.requests.append((name, wanted))
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, str) or name not in self.files:
            request.send_error(int(fault or 404))
            return
        content = self.files[name]
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.ranges else 0
        if start >= len(content):
            request.send_error(416)
            return
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        request.wfile.write(content[start:] if fault is None else content[start : start + fault])


@dataclass
class Toy:
    """A small dataset: its graph, the folder that holds its one raw file, that file's content, its entry."""

    graph: Graph
    folder: Path
    content: bytes
    dataset: Dataset
    release: Release
