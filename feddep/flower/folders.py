"""Folders of the participants of a federation: a client holds its subgraph and its share of the
split, the server neither.

``DIRECTORY/server`` and ``DIRECTORY/client0`` … each have ``federation.json``: what all may know.
A client's folder has ``graph.safetensors`` and ``split.safetensors`` beside it, in the client's own
node ids.
"""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from feddep.flower import FederationError, protocols
from feddep.graph.graph import Graph
from feddep.graph.split import Split
from feddep.training.config import TrainingConfig
from feddep.training.task import ClientData, Task
from feddep.utils.errors import DataError
from feddep.utils.files import read_json, write_json

THREADS = 1
"""Threads of PyTorch in each process, which sums depend on; the workflow trains with as many."""


@dataclass(frozen=True)
class Federation:
    """Description of a federation that every participant has.

    Attributes:
        key: drawn for each federation; a client that holds a part of another is noticed.
        method: the method's name and parameters, ``{"name": …, parameter: value, …}``.
        setting: fields of :class:`feddep.training.config.TrainingConfig`.
        seed: the run's seed.
        clients: number of clients M.
        features: number of node features F.
        classes: number of classes C.
        nodes: number of nodes of each client, the most that it may report.
        sizes: numbers that the shapes of the method's messages take from each client's subgraph;
            none for most.
    """

    key: str
    method: Mapping[str, Any]
    setting: Mapping[str, Any]
    seed: int
    clients: int
    features: int
    classes: int
    nodes: list[int]
    sizes: list[int]

    @classmethod
    def load(cls, folder: Path) -> "Federation":
        """Read ``federation.json`` of a participant's folder.

        Raises:
            DataError: if it is missing or damaged, or another version of this package wrote it.
        """
        path = folder / "federation.json"
        try:
            return cls(**read_json(path))
        except TypeError as error:
            raise DataError(
                f"{path} describes no federation ({error}); cut the data again"
            ) from None

    def protocol(self, number: int = -1, part: ClientData | None = None) -> protocols.Protocol:
        """The method as a participant runs it: a client with its part of the data, or the server
        with none.

        The server's graph has no nodes; models get their sizes from it all the same.
        """
        nothing = np.zeros(0, dtype=np.int64)
        graph, split = part or (
            Graph.from_edges(
                np.zeros((0, 2)), sp.csr_matrix((0, self.features)), nothing, self.classes
            ),
            Split(nothing, nothing, nothing),
        )
        name = "server" if part is None else f"client{number}"
        setting = TrainingConfig(**self.setting)
        task = Task(name, graph, split, None, setting, self.seed, stacked=False)
        protocol, parameters = protocols.configured(self.method)
        return protocol(task, parameters, self.clients, self.sizes, number)


def cut(task: Task, method: Mapping[str, Any], directory: Path) -> Federation:
    """Write a folder for the server and for each client of a task.

    Args:
        task: the task, with its partition.
        method: name and parameters of the method.
        directory: where the folders go.

    Raises:
        FederationError: if the method cannot be trained by processes, or the metric is no number of
            nodes.
        PartitionError: if there is no partition, or a client has no validation nodes.
        ConfigError: if a generator would have nothing to learn from.
    """
    protocol, parameters = protocols.configured(method)
    if task.setting.metric != "accuracy":
        raise FederationError(
            f"metric is {task.setting.metric}; where processes train, it must be accuracy"
        )
    setting = task.setting
    if setting.participation < 1 or setting.lost_updates or setting.new_clients:
        raise FederationError(
            "participation is below 1, or lost_updates or new_clients above 0; where processes "
            "train, all do in every round"
        )
    parts = task.subgraphs()
    folders = [client_folder(directory, number) for number in range(len(parts))]
    for folder in (server_folder(directory), *folders):
        folder.mkdir(parents=True, exist_ok=True)
    federation = Federation(
        key=secrets.token_hex(16),
        method=dict(method),
        setting=task.setting.model_dump(mode="json"),
        seed=task.seed,
        clients=len(parts),
        features=task.graph.num_features,
        classes=task.graph.num_classes,
        nodes=[graph.num_nodes for graph, _ in parts],
        sizes=protocol.sizes_of(task, parameters),
    )
    for folder in (server_folder(directory), *folders):
        write_json(folder / "federation.json", asdict(federation))
    for number, (graph, split) in enumerate(parts):
        graph.save(folders[number] / "graph.safetensors", _key(federation, number))
        split.save(folders[number] / "split.safetensors", _key(federation, number))
    return federation


def read_part(folder: Path, federation: Federation, number: int) -> ClientData:
    """A client's subgraph and its share of the split.

    Raises:
        DataError: if a file is missing, damaged, of another federation or of another client.
    """
    key = _key(federation, number)
    return Graph.load(folder / "graph.safetensors", key), Split.load(
        folder / "split.safetensors", key
    )


def server_folder(directory: Path) -> Path:
    """The server's folder."""
    return directory / "server"


def client_folder(directory: Path, number: int) -> Path:
    """A client's folder."""
    return directory / f"client{number}"


def _key(federation: Federation, number: int) -> str:
    return f"{federation.key}/client{number}"
