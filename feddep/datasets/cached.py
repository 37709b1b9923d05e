"""Public datasets as graphs, kept in a folder: without the workflow, which keeps them itself."""

from contextlib import suppress
from pathlib import Path

from feddep.datasets import fetching, parsing, public_graphs
from feddep.graph.graph import Graph
from feddep.utils.errors import DataError


def load(name: str, folder: Path, mirror: str | Path | None = None) -> Graph:
    """The graph of a dataset from ``folder/graphs``; downloaded to ``folder/raw`` and verified when it is first asked for.

    ``mirror`` is a folder or URL with the raw files, tried before the public sources.

    Raises:
        ConfigError: if there is no such dataset.
        DataError: if no source has its files.
    """
    identity, file = public_graphs.find(name).identity, folder / "graphs" / f"{name}.safetensors"
    with suppress(DataError):  # not there yet, or of another release
        return Graph.load(file, identity)
    raw = folder / "raw" / name
    fetching.download(name, raw, mirror)
    graph = parsing.parse(name, raw)
    graph.save(file, identity)
    return graph
