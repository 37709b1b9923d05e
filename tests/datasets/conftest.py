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
from feddep.datasets.checksums import RawFile
from feddep.datasets.registry import REGISTRY, Dataset
from feddep.datasets.sources import Mirror, Release, Source, Url
from feddep.datasets.synthetic import planted_partition


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "network: needs a package index; skipped where none is reached")


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.respond(self)

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
    """The registry's dataset ``toy``: sources are a mirror, which has it, and the server, which does not have it yet."""
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
    release = Release("npz", (RawFile("toy.npz", ("sha256:" + "0" * 64, f"git-blob:{blob}")),))
    sources: tuple[Source, ...] = (Mirror(release, "npz"), Url(release, server.url))
    dataset = Dataset("toy", "Toy", 60, graph.num_edges, 30, 3, canonical(graph).fingerprint, sources)
    monkeypatch.setitem(REGISTRY, "toy", dataset)
    return Toy(graph, folder.parent, content, dataset, release)
