"""Graphs, splits and partitions as files for other code.

A folder a graph: ``graph.npz``, which :func:`feddep.datasets.own_files.read` reads; for each seed
``SEED.npz`` with split and partition, and ``SEED.pt`` with the clients' subgraphs as ``Data`` of
PyTorch Geometric.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from feddep.config.models import PartitionOptions, SplitOptions
from feddep.datasets import pyg
from feddep.datasets.public_graphs import clients_of
from feddep.experiment.inputs import make_inputs
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import PARTS, Split
from feddep.training.config import PROTOCOLS
from feddep.utils.errors import ConfigError
from feddep.utils.files import atomic_path, write_text
from feddep.utils.seeding import generator

_MOST = 2**15 - 1
README = """\
# Divisions

A folder a graph. Nodes are numbered from 0, in the order of `graph.npz`.

| file | content |
|---|---|
| `graph.npz` | `attr_matrix`, the features, shape (n, F); `labels`, shape (n,); the adjacency matrix in CSR form as `adj_data`, `adj_indices`, `adj_indptr` and `adj_shape` |
| `SEED.npz` | `train`, `val` and `test`, ids of nodes; `client`, the owner of each node; `classes`, the number of classes; `graph` and `digest`, what predictions are recognised by |
| `SEED.pt` | a list with a `Data` of PyTorch Geometric for each client, without `x`: `edge_index`, `y`, three masks, and `n_id`, the ids of its nodes |

```python
import numpy as np
import torch

x = torch.from_numpy(np.load("cora/graph.npz")["attr_matrix"])
clients = torch.load("cora/30.pt", weights_only=False)
for data in clients:
    data.x = x[data.n_id]
```

Train on each seed, choose by validation nodes, and write the classes that owners give to validation and
test nodes, -1 elsewhere, with `from feddep import api`:

```python
api.save_predictions("predictions/cora.npz", "cora", {30: classes_of_seed_30, 31: classes_of_seed_31})
```

`feddep judge predictions` compares them with recorded methods.
"""  # noqa: E501


def seeds(text: str) -> list[int]:
    """The seeds that a text names: ``30..39``, ``30``, or ``fresh:`` and a phrase, by which ten
    seeds from 1000 are drawn, which no table has.

    Raises:
        ConfigError: if it names none, or one above 32767.
    """
    if text.startswith("fresh:"):
        drawn = generator(0, "fresh", text).choice(_MOST - 1000, 10, replace=False)
        return sorted((drawn + 1000).tolist())
    ends = re.fullmatch(r"(\d{1,5})(?:\.\.(\d{1,5}))?", text)
    found = range(int(ends[1]), int(ends[2] or ends[1]) + 1) if ends else range(0)
    if not found or max(found) > _MOST:
        raise ConfigError(
            f"seeds is {text}; 30..39, 30 or fresh:PHRASE is allowed, with seeds up to {_MOST}"
        )
    return list(found)


def describe(graph: Graph, split: Split, partition: Partition) -> dict[str, Any]:
    """What ``SEED.npz`` has; the digest is of all sets and owners."""
    arrays = {**{part: getattr(split, part) for part in PARTS}, "client": partition.client}
    digest = hashlib.sha256()
    for ids in arrays.values():
        digest.update(f"{len(ids)} ".encode() + ids.astype("<i8").tobytes())
    return {
        **arrays,
        "classes": graph.num_classes,
        "graph": graph.fingerprint[:16],
        "digest": digest.hexdigest()[:16],
    }


def write_npz(target: Path, arrays: Mapping[str, Any]) -> None:
    """Write an archive whose bytes follow from its arrays."""
    with atomic_path(target) as file:
        np.savez_compressed(file, **arrays)


def export(
    graph: Graph,
    name: str,
    protocol: str,
    seeds: Iterable[int],
    folder: Path,
    clients: int | None = None,
) -> None:
    """Write a graph with its divisions for some seeds.

    Args:
        graph: the graph.
        name: of the dataset; one that is several graphs has one a client.
        protocol: ``global`` or ``field``.
        seeds: of split and partition.
        folder: where to; the graph has a folder of its name there, and a README beside it.
        clients: number of clients M; by default the protocol's.
    """
    import torch

    preset, several = PROTOCOLS[protocol], clients_of(name)
    split_options = SplitOptions(**preset["split"])
    method = PartitionOptions(method="given" if several else "louvain")
    number = None if several else clients or preset["clients"]
    adjacency = {
        "adj_data": np.ones(len(graph.indices), dtype=np.float32),
        "adj_indices": graph.indices,
        "adj_indptr": graph.indptr,
        "adj_shape": [graph.num_nodes, graph.num_nodes],
    }
    features = {"attr_matrix": graph.features.toarray(), "labels": graph.labels}
    write_npz(folder / name / "graph.npz", {**features, **adjacency})
    write_text(folder / "README.md", README)
    for seed in seeds:
        _, split, partition = make_inputs(graph, split_options, method, number, seed)
        assert partition is not None
        write_npz(folder / name / f"{seed}.npz", describe(graph, split, partition))
        parts = pyg.client_data(graph, partition, split)
        for data in parts:
            del data.x
        with atomic_path(folder / name / f"{seed}.pt") as file:
            torch.save(parts, file)
