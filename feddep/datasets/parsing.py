"""From raw files to the graph that they hold, whichever release they are."""

from pathlib import Path

from feddep.datasets.canonical import canonical
from feddep.datasets.fetching import problems
from feddep.datasets.formats import arrays, content, npz, planetoid
from feddep.datasets.public_graphs import find
from feddep.graph.graph import Graph
from feddep.utils.errors import DataError

_READERS = {"arrays": arrays.read, "content": content.read, "npz": npz.read, "planetoid": planetoid.read}


def parse(name: str, directory: str | Path) -> Graph:
    """The graph of a dataset in canonical node order, or a large one in its own, from the raw files in ``directory``.

    Files are opened after their checksums are verified, and the graph is checked against the registry: its size, and its
    fingerprint where one is known.

    Raises:
        ConfigError: if the registry has no such dataset.
        DataError: if files are missing or not the published ones, or the graph is not the one that the registry describes.
    """
    dataset, directory = find(name), Path(directory)
    present = (release for release in dataset.releases if all((directory / file).is_file() for file in release.files))
    release = next(present, None)
    if release is None:
        wanted = " or ".join(", ".join(release.files) for release in dataset.releases)
        raise DataError(f"{directory} does not hold the raw files of {name} ({wanted}); run the stage download")
    if found := problems(release, directory):
        raise DataError(f"{directory}: {'; '.join(found)}; delete the folder and run the stage download for {name} again")
    graph = _READERS[release.format](directory, release)
    if not dataset.large:
        graph = canonical(graph)
    size = graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes
    expected = dataset.nodes, dataset.edges, dataset.features, dataset.classes
    if size != expected:
        raise DataError(f"{name} has {size} nodes, edges, features, classes where the registry has {expected}")
    if dataset.fingerprint not in (None, graph.fingerprint):
        raise DataError(f"{name} has the fingerprint {graph.fingerprint} where the registry has {dataset.fingerprint}")
    return graph
