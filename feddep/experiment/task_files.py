"""Graphs, splits and partitions from their files, each only if it is the one that the configuration asks for."""

from pathlib import Path

from feddep.config import variants
from feddep.config.loading import SOURCES, Config, entry
from feddep.datasets.public_graphs import find
from feddep.experiment import keys
from feddep.experiment.plan import PartitionSpec
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.utils.errors import DataError


def load_graph(config: Config, dataset: str, file: str | Path) -> Graph:
    """Read the graph of a dataset.

    Raises:
        DataError: if it is another, or the file is missing or damaged.
    """
    made = any(source in entry(config, "datasets", dataset) for source in SOURCES)
    if made or find(variants.base(dataset)).fingerprint is None:
        return Graph.load(file, keys.graph_key(config, dataset))
    graph = Graph.load(file)
    if graph.fingerprint != keys.data_fingerprint(config, dataset):
        raise DataError(f"{file} is not the {variants.base(dataset)} that the registry knows; delete it and run prepare again")
    return graph


def load_split(config: Config, dataset: str, seed: int, file: str | Path) -> Split:
    """Read the split of a dataset for a seed.

    Raises:
        DataError: if it is another, or the file is missing or damaged.
    """
    return Split.load(file, keys.split_key(config, dataset, seed))


def load_partition(config: Config, spec: PartitionSpec, file: str | Path) -> Partition:
    """Read a partition.

    Raises:
        DataError: if it is another, or the file is missing or damaged.
    """
    return Partition.load(file, keys.partition_key(config, spec))
