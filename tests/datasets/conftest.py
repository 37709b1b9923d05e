"""A toy dataset in the registry, and a local server that serves raw files well or badly."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from toys import Server, Toy

from feddep.datasets.canonical import canonical
from feddep.datasets.public_graphs import REGISTRY, Dataset, Release
from feddep.datasets.synthetic import planted_partition


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.respond(self)

        do_HEAD = do_GET  # noqa: N815

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
def toy(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """The registry's dataset ``toy``: a mirror has it, and its public URL is the server, which does not have it yet."""
    graph = planted_partition(60, 3, 6, 30, 4.0, 0.5, 5, 0.6, seed=1)
    folder = tmp_path / "mirror" / "npz"
    folder.mkdir(parents=True)
    arrays = {}
    for part, matrix in (("adj", graph.adjacency), ("attr", graph.features)):
        arrays |= {f"{part}_{name}": getattr(matrix, name) for name in ("data", "indices", "indptr")}
        arrays[f"{part}_shape"] = np.array(matrix.shape)
    np.savez(folder / "toy.npz", labels=graph.labels, attr_names=np.array(["a word", None], dtype=object), **arrays)
    content = (folder / "toy.npz").read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    release = Release("npz", {"toy.npz": ["sha256:" + "0" * 64, f"git-blob:{blob}"]})
    dataset = Dataset("toy", "Toy", 60, graph.num_edges, 30, 3, server.url, release, canonical(graph).fingerprint)
    monkeypatch.setitem(REGISTRY, "toy", dataset)
    return Toy(graph, folder.parent, content, dataset)
