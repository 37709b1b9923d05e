"""From the specification of a run to its graph, split and partition."""

from collections.abc import Callable, Mapping
from typing import Any

from feddep.config.entries import Entry
from feddep.config.models import PartitionOptions, SplitOptions
from feddep.datasets import own_files
from feddep.datasets.synthetic import planted_partition
from feddep.experiment import keys
from feddep.graph import partitioners
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split, draw
from feddep.utils.errors import ConfigError

Inputs = tuple[Graph, Split, Partition | None]


def read_graph(dataset: Entry, public: Callable[[str], Graph]) -> Graph:
    """The graph of a dataset: one's own, a built-in one, or a public one, which ``public`` reads by
    its name.
    """
    if "path" in dataset.options:
        return own_files.read(dataset.options["path"])
    if "synthetic" in dataset.options:
        return planted_partition(**dataset.options["synthetic"])
    return public(dataset.name)


def divide(specification: Mapping[str, Any], graph: Graph) -> Partition | None:
    """The partition of a graph among the clients of a run; None for one of the whole graph.

    Args:
        specification: of the run (:func:`feddep.experiment.keys.specification`); ``partition`` and
            ``seed`` are read.
        graph: the graph.

    Raises:
        PartitionError: if it cannot be partitioned like that.
    """
    options = specification["partition"]
    return options and partitioners.partition(graph, seed=specification["seed"], **options)


def split_nodes(
    specification: Mapping[str, Any],
    graph: Graph,
    path: str | None = None,
    partition: Partition | None = None,
) -> Split:
    """Training, validation and test nodes of a run.

    Args:
        specification: of the run; ``dataset``, ``split`` and ``seed`` are read.
        graph: the graph.
        path: of the files of a graph of one's own, which may have masks.
        partition: whose shares a split ``within_clients`` holds for.

    Raises:
        ConfigError: if there are masks to be read and no path.
        DataError: if they are no masks of the graph.
    """
    how, seed = specification["dataset"].get("split", "random"), specification["seed"]
    if how != "masks":
        return draw(graph, how, specification["split"], seed, partition)
    if path is None:
        raise ConfigError("split is masks, which is for the path of a graph of your own")
    return own_files.split_of(path, seed)


def make_inputs(
    graph: Graph,
    split: SplitOptions | Split,
    partition: PartitionOptions | Partition | None,
    clients: int | None,
    seed: int,
    path: str | None = None,
) -> Inputs:
    """A graph with a split and, unless that is None, a partition, as :func:`inputs` makes them of a
    run with these options, or as they are given.
    """
    options = None
    if isinstance(partition, PartitionOptions):
        options = {"clients": clients, **partition.in_key()}
    shares = SplitOptions() if isinstance(split, Split) else split
    specification = keys.specification(dataset={}, split=shares, partition=options, seed=seed)
    owners = partition if isinstance(partition, Partition) else divide(specification, graph)
    if isinstance(split, Split):
        return graph, split, owners
    return graph, split_nodes(specification, graph, path, owners), owners


def inputs(specification: Mapping[str, Any], graph: Graph, path: str | None = None) -> Inputs:
    """A graph with the split and the partition of a run; arguments and errors are those of
    :func:`divide` and :func:`split_nodes`.
    """
    partition = divide(specification, graph)
    return graph, split_nodes(specification, graph, path, partition), partition
