"""A division as the code of FED-PUB (github.com/JinheonBaek/FED-PUB) reads it."""

from pathlib import Path

import numpy as np
import torch


def write(divisions, seed, data_path, dataset="Cora", mode="disjoint"):
    """Write the division of a seed to the folder ``datasets`` of the argument ``--base-path``, in
    place of what ``data/generators/disjoint.py`` writes there.

    That scales each row of features to the sum 1, and so does this.  ``client_data.n_id`` has the
    ids of a client's nodes.
    """
    x = torch.from_numpy(np.load(Path(divisions, "graph.npz"))["attr_matrix"])
    x = x / x.sum(dim=1, keepdim=True).clamp(min=1)
    clients = torch.load(Path(divisions, f"{seed}.pt"), weights_only=False)
    folder = Path(data_path, f"{dataset}_{mode}", str(len(clients)))
    folder.mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(clients):
        data.x = x[data.n_id]
        torch.save({"client_data": data, "client_id": i}, folder / f"partition_{i}.pt")
