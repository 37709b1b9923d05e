"""From raw files to the graph they hold, whichever release they are."""

from pathlib import Path

from feddep.datasets.canonical import canonical
from feddep.datasets.checksums import objection
from feddep.datasets.formats import content, npz, planetoid
from feddep.datasets.registry import Dataset, find
from feddep.datasets.sources import Release
from feddep.errors import DataError
from feddep.graph import Graph

_READERS = {"content": content.read, "npz": npz.read, "planetoid": planetoid.read}


def parse(name: str, directory: str | Path) -> Graph:
    """The graph of a dataset in canonical node order, from the raw files in ``directory``.

    Files are opened after their checksums are verified, and the graph is checked against the registry.

    Raises:
        ConfigError: if the registry has no such dataset.
        DataError: if files are missing or not the published ones, or the graph is not the one that the registry describes.
    """
    dataset, directory = find(name), Path(directory)
    release = _release(dataset, directory)
    problems = [problem for file in release.files if (problem := objection(directory / file.name, file))]
    if problems:
        raise DataError(f"{directory}: {'; '.join(problems)}; delete the folder and run the stage download for {name} again")
    graph = canonical(_READERS[release.format](directory, release))
    _check(dataset, graph)
    return graph


def _release(dataset: Dataset, directory: Path) -> Release:
    for release in dataset.releases:
        if all((directory / file.name).is_file() for file in release.files):
            return release
    wanted = " or ".join(", ".join(file.name for file in release.files) for release in dataset.releases)
    raise DataError(f"{directory} does not hold the raw files of {dataset.name} ({wanted}); run the stage download")


def _check(dataset: Dataset, graph: Graph) -> None:
    found = graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes
    expected = dataset.nodes, dataset.edges, dataset.features, dataset.classes
    if found != expected:
        raise DataError(f"{dataset.name} has {found} nodes, edges, features, classes where the registry has {expected}")
    if graph.fingerprint != dataset.fingerprint:
        raise DataError(f"{dataset.name} has the fingerprint {graph.fingerprint} where the registry has {dataset.fingerprint}")
