"""A local server that serves raw files well or badly, and a toy dataset in the registry."""

import threading
from collections.abc import Iterator
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from feddep.datasets.canonical import canonical
from feddep.datasets.public_graphs import REGISTRY, Dataset, Release
from feddep.datasets.synthetic import planted_partition
from graphs import npz_arrays


@pytest.fixture
def server() -> Iterator[SimpleNamespace]:
    """Serves ``files`` by path from ``url``; HEAD requests are kept in ``asked``, GET requests in
    ``sent``.

    ``faults`` are spent one a download: the number of bytes after which to hang up, or a status to
    answer.
    """
    state = SimpleNamespace(files={}, faults=[], asked=[], sent=[])

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            name, head = self.path.lstrip("/"), self.command == "HEAD"
            (state.asked if head else state.sent).append(name)
            fault = state.faults.pop(0) if state.faults and not head else None
            if isinstance(fault, str) or name not in state.files:
                self.send_error(int(fault or 404))
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(state.files[name])))
            self.end_headers()
            if not head:
                self.wfile.write(state.files[name][:fault])

        do_GET = do_HEAD  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{http.server_port}/"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def toy(
    tmp_path: Path, server: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> SimpleNamespace:
    """The registry's dataset ``toy``: a mirror has its one file, and its public URL is the server,
    which does not have it yet.
    """
    graph = planted_partition(60, 3, 6, 30, 4.0, 0.5, 5, 0.6, seed=1)
    file = tmp_path / "mirror" / "npz" / "toy.npz"
    file.parent.mkdir(parents=True)
    np.savez(file, attr_names=np.array(["a word", None], dtype=object), **npz_arrays(graph))
    content = file.read_bytes()
    blob = sha1(b"blob %d\0" % len(content) + content).hexdigest()
    release = Release("npz", {"toy.npz": ["sha256:" + "0" * 64, f"git-blob:{blob}"]})
    dataset = Dataset(
        "toy",
        "Toy",
        "synthetic",
        60,
        graph.num_edges,
        30,
        3,
        server.url,
        release,
        canonical(graph).fingerprint,
    )
    monkeypatch.setitem(REGISTRY, "toy", dataset)
    return SimpleNamespace(graph=graph, mirror=file.parent.parent, content=content, dataset=dataset)
