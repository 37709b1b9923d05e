"""What each participant of a federation holds: a client its subgraph and its share of the split, the server neither.

``DIRECTORY/server`` and ``DIRECTORY/client0`` … each have ``federation.json``: what all may know.  A client's folder has
``graph.safetensors`` and ``split.safetensors`` beside it, in the client's own node ids.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from feddep.deployment import deployed
from feddep.graph.graph import Graph
from feddep.graph.split import Split
from feddep.training.config import TrainingConfig
from feddep.training.task import Part, Task
from feddep.utils.errors import DataError
from feddep.utils.files import read_result, write_result


@dataclass(frozen=True)
class Federation:
    """What every participant knows of a federation.

    Attributes:
        key: content key of the run, the same as that of its simulation.
        specification: everything that determines the run, but data and revisions.
        clients: number of clients M.
        features: number of node features F.
        classes: number of classes C.
        threads: threads of PyTorch in each process, which sums depend on.
        secure_aggregation: whether the server is to see no client's weights, but their mean alone.
        sizes: numbers that the shapes of the method's messages take from each client's subgraph; none for most.
    """

    key: str
    specification: Mapping[str, Any]
    clients: int
    features: int
    classes: int
    threads: int
    secure_aggregation: bool = False
    sizes: list[int] = field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Write ``federation.json`` to a participant's folder."""
        write_result(folder / "federation.json", asdict(self))

    @classmethod
    def load(cls, folder: Path) -> "Federation":
        """Read ``federation.json`` of a participant's folder.

        Raises:
            DataError: if it is missing, damaged or something else.
        """
        content = read_result(folder / "federation.json")
        try:
            return cls(**content)
        except TypeError:
            raise DataError(f"{folder / 'federation.json'} describes no federation; run feddep cut again") from None

    def task(self, name: str, graph: Graph, split: Split) -> Task:
        """The task as one participant sees it."""
        return Task(name, graph, split, None, TrainingConfig(**self.specification["setting"]), self.specification["seed"])

    def server_task(self) -> Task:
        """The server's view of the task: a graph without nodes, from which models still get their sizes."""
        nothing = np.zeros(0, dtype=np.int64)
        graph = Graph.from_edges(np.zeros((0, 2)), sp.csr_matrix((0, self.features)), nothing, self.classes)
        return self.task("server", graph, Split(nothing, nothing, nothing))


def cut(task: Task, federation: Federation, directory: Path) -> None:
    """Write a folder for the server and for each client of a task.

    Raises:
        DeploymentError: if the method cannot be trained by processes, or nothing can be hidden in a sum.
        PartitionError: if there is no partition, or a client has no validation nodes.
        ConfigError: if a generator would have nothing to learn from.
    """
    method, parameters = deployed.configured(federation.specification["method"])
    if federation.secure_aggregation and federation.clients < 2:
        raise deployed.DeploymentError("secure aggregation needs 2 clients or more, but there is 1")
    federation = replace(federation, sizes=method.sizes(task, parameters))
    federation.save(server_folder(directory))
    for number, (graph, split) in enumerate(task.subgraphs()):
        folder = client_folder(directory, number)
        federation.save(folder)
        graph.save(folder / "graph.safetensors", _key(federation, number))
        split.save(folder / "split.safetensors", _key(federation, number))


def read_part(folder: Path, federation: Federation, number: int) -> Part:
    """A client's subgraph and its share of the split.

    Raises:
        DataError: if a file is missing, damaged, of another federation or of another client.
    """
    key = _key(federation, number)
    return Graph.load(folder / "graph.safetensors", key), Split.load(folder / "split.safetensors", key)


def server_folder(directory: Path) -> Path:
    """The server's folder."""
    return directory / "server"


def client_folder(directory: Path, number: int) -> Path:
    """A client's folder."""
    return directory / f"client{number}"


def _key(federation: Federation, number: int) -> str:
    return f"{federation.key}/client{number}"
