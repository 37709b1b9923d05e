"""From raw files to the graph that they hold, whichever release they are; and, without the
workflow, graphs kept in a folder.
"""

from contextlib import suppress
from pathlib import Path

from feddep.datasets import formats
from feddep.datasets.canonical import canonical
from feddep.datasets.fetching import download, unverified
from feddep.datasets.public_graphs import find
from feddep.graph.graph import Graph
from feddep.utils.errors import DataError


def parse(name: str, directory: str | Path) -> Graph:
    """The graph of a dataset in canonical node order, or a large one in its own, from the raw files
    in ``directory``.

    Checksums are verified before files are opened; the graph's size, and its fingerprint where one
    is known, are then compared with the registry.

    Raises:
        ConfigError: if the registry has no such dataset.
        DataError: if files are missing or not the published ones, or the graph is not the one that
            the registry describes.
    """
    dataset, directory = find(name), Path(directory)
    release = next(
        (release for release in dataset.releases if not unverified(release, directory)), None
    )
    if release is None:
        wrong = ", ".join(unverified(dataset.release, directory))
        raise DataError(
            f"{directory} lacks published files of {name} ({wrong}); run the stage download"
        )
    graph = formats.read(directory, release, dataset.clients)
    if not dataset.large:
        graph = canonical(graph)
    size = graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes
    expected = dataset.nodes, dataset.edges, dataset.features, dataset.classes
    if size != expected:
        raise DataError(
            f"{name} has {size} nodes, edges, features, classes where the registry has {expected}"
        )
    if dataset.fingerprint not in (None, graph.fingerprint):
        raise DataError(
            f"{name} has the fingerprint {graph.fingerprint} where the registry has "
            f"{dataset.fingerprint}"
        )
    return graph


def load(name: str, folder: Path, mirror: str | Path | None = None) -> Graph:
    """The graph of a dataset from ``folder/graphs``; downloaded to ``folder/raw`` and verified when
    it is first asked for.

    ``mirror`` is a folder or URL with the raw files, tried before the public sources.

    Raises:
        ConfigError: if there is no such dataset.
        DataError: if no source has its files.
    """
    identity, file = find(name).identity, folder / "graphs" / f"{name}.safetensors"
    with suppress(DataError):  # not there yet, or of another release
        return Graph.load(file, identity)
    raw = folder / "raw" / name
    download(name, raw, mirror)
    graph = parse(name, raw)
    graph.save(file, identity)
    return graph
