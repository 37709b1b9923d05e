"""A division as OpenFGL (github.com/xkLi-Allen/OpenFGL) keeps those that it makes itself: it finds
and takes it.
"""

import pickle
from pathlib import Path

import numpy as np
import torch


def write(divisions, seed, root, dataset="Cora", simulation="subgraph_fl_louvain_1"):
    """Write the division of a seed to the folder of the argument ``--root``.

    OpenFGL is then started with the same number of clients, its default simulation and
    resolution.  Its server numbers the nodes of the whole graph otherwise: only what clients
    measure counts.  ``data.global_map`` has the ids of a client's nodes.
    """
    x = torch.from_numpy(np.load(Path(divisions, "graph.npz"))["attr_matrix"])
    classes = int(np.load(Path(divisions, f"{seed}.npz"))["classes"])
    clients = torch.load(Path(divisions, f"{seed}.pt"), weights_only=False)
    folder = Path(root, "distrib", f"{simulation}_{dataset}_client_{len(clients)}")
    split = folder / "node_cls" / "default_split"
    split.mkdir(parents=True, exist_ok=True)
    for i, data in enumerate(clients):
        data.x, data.num_global_classes = x[data.n_id], classes
        data.global_map = dict(enumerate(data.n_id.tolist()))
        torch.save(data, folder / f"data_{i}.pt")
        for part in ("train", "val", "test"):
            mask = data[f"{part}_mask"]
            torch.save(mask, split / f"{part}_{i}.pt")
            with (split / f"glb_{part}_{i}.pkl").open("wb") as file:
                pickle.dump(data.n_id[mask].tolist(), file)
