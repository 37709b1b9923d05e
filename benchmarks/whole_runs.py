"""Whole runs beside two peers: FedAvg as one writes it with PyTorch Geometric, and FedAvg, FedSage+
and FedDEP of OpenFGL.

    pip install openfgl-lib munkres cytoolz pip install --no-build-isolation torch-scatter
    torch-sparse    # for its FedDEP: compiled, 10 to 30 minutes python -m benchmarks.whole_runs
    --datasets cora citeseer --graphs results/graphs --output benchmarks/results

5 clients of one Louvain partition, 50 rounds, two layers of width 128, batch 64, fan-out 5, one
split; from graphs in memory to the last round, evaluation included; in turns in one process, on one
thread.  Seconds are the process's own, which other work on the machine does not change.

Peers get the features as our runs scale them.  The plain one trains what we train: as many steps,
on batches of the same law, from initial weights of the same law, and it is evaluated as often.
OpenFGL has algorithms of its own: a local epoch of its FedAvg and FedSage+ is one step on all
training nodes, its FedSage+ trains generators in 10 of the 50 rounds, and its FedDEP has the epochs
of its own configuration and batches of 64.  It is as it is, with ``num_epochs`` 1, as many epochs
as ours, and for FedAvg and FedSage+ also with as many as our epoch has steps (``openfgl_steps``);
only its reader of datasets is replaced, so that it gets our partition and split.  Its FedDEP draws
neighbours by compiled extensions (torch-scatter, torch-sparse); where there are none, leave it out
with ``--methods``.  OpenFGL trains by Adam, ours by SGD unless ``--setting`` says otherwise, which
the plain peer does not follow.
"""

import contextlib
import math
import os
import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from benchmarks.arguments import parser_of
from benchmarks.plain import PlainSAGE, blocks_of
from benchmarks.stages import CONFIG, seconds_of
from feddep.config.loading import load
from feddep.datasets import pyg
from feddep.experiment import plan
from feddep.experiment.provenance import environment
from feddep.experiment.tasks import build_task
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition, louvain
from feddep.graph.sampling import sample_trees
from feddep.graph.split import PARTS, Split, random_split
from feddep.training.summary import summary
from feddep.utils.csv_files import write_csv
from feddep.utils.errors import DataError
from feddep.utils.files import write_json

CLIENTS, ROUNDS, SEED, BATCH, HIDDEN = 5, 50, 0, 64, 128
METHODS = ("fedavg", "fedsage_plus", "feddep")
PEERS = ("openfgl", "openfgl_steps", "plain")
"""The second is a peer of FedAvg and FedSage+, the last of FedAvg alone."""


def ours(
    method: str, dataset: str, graph: Graph, partition: Partition, split: Split, *setting: str
) -> tuple[float, float]:
    """Seconds and test accuracy of our run: the steps before the first round, and the rounds."""
    seconds, result = seconds_of(_specification(method, dataset, *setting), graph, partition, split)
    return sum(seconds.values()), summary(result)["accuracy"]["best"]


def _specification(method: str, dataset: str, *setting: str) -> dict[str, Any]:
    entry = ",".join(["feddep", f"batch_size={BATCH}", f"rounds={ROUNDS}", *setting])
    run = plan.one_run(load(CONFIG), method, CLIENTS, SEED, setting=entry, dataset=dataset)
    return run.specification


def plain(graph: Graph, partition: Partition, split: Split) -> tuple[float, float]:
    """Seconds and test accuracy of FedAvg with PyG's ``SAGEConv`` on dense features, by SGD with
    learning rate 0.1, as ours.
    """
    start = time.perf_counter()
    whole, parts = pyg.to_data(graph, split), pyg.client_data(graph, partition, split)
    subgraphs = [graph.subgraph(partition.nodes(i)) for i in range(CLIENTS)]
    rng = np.random.default_rng(SEED)
    torch.manual_seed(SEED)
    model = PlainSAGE(graph.num_features, HIDDEN, graph.num_classes, 2, 0.5)
    results = []
    for _ in range(ROUNDS):
        server = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        mean = {name: torch.zeros_like(tensor) for name, tensor in server.items()}
        for data, subgraph in zip(parts, subgraphs, strict=True):
            model.load_state_dict(server)
            _train(model, data, subgraph, rng)
            for name, tensor in model.state_dict().items():
                mean[name] += tensor * (data.num_nodes / graph.num_nodes)
        model.load_state_dict(mean)
        validated = sum(_correct(model, data, data.val_mask) for data in parts)
        results.append((validated, _correct(model, whole, whole.test_mask) / len(split.test)))
    return time.perf_counter() - start, max(results)[1]


def _train(model: PlainSAGE, data: Any, subgraph: Graph, rng: np.random.Generator) -> None:
    """An epoch on the training nodes of a client."""
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    nodes = rng.permutation(data.train_mask.nonzero().ravel().numpy())
    for batch in np.split(nodes, range(BATCH, len(nodes), BATCH)):
        sources, blocks = blocks_of(sample_trees(subgraph, batch, (5, 5), rng))
        optimizer.zero_grad()
        cross_entropy(
            model(data.x[torch.from_numpy(sources)], blocks), data.y[torch.from_numpy(batch)]
        ).backward()
        optimizer.step()


@torch.no_grad()
def _correct(model: PlainSAGE, data: Any, mask: Tensor) -> int:
    model.eval()
    logits = model(data.x, [(data.edge_index, data.num_nodes)] * 2)
    return int((logits.argmax(dim=1) == data.y)[mask].sum())


def openfgl(
    method: str,
    graph: Graph,
    partition: Partition,
    split: Split,
    epochs: int = 1,
    model: str = "graphsage",
    **options: Any,
) -> tuple[float, float]:
    """Seconds and test accuracy of OpenFGL's run; the accuracy is of each client's own test nodes
    on its own subgraph.

    An epoch is one step; further ``options`` are OpenFGL's.

    Raises:
        DataError: if OpenFGL, or what it imports, is not installed.
    """
    try:
        from openfgl import config  # type: ignore[import-not-found]
        from openfgl.flcore import trainer  # type: ignore[import-not-found]

        transforms = _transforms_of_older_pyg() if method == "feddep" else contextlib.nullcontext()
    except ImportError as error:
        raise DataError(
            f"OpenFGL cannot be imported ({error}); benchmarks/README.md says what to install"
        ) from error
    options = {
        **{
            "num_clients": partition.num_clients,
            "num_rounds": ROUNDS,
            "num_epochs": epochs,
            "hid_dim": HIDDEN,
            "seed": SEED,
        },
        **{
            "fl_algorithm": method,
            "dataset": "Cora",
            "model": model,
            "metrics": "accuracy",
            **options,
        },
    }
    arguments = config.parser.parse_args(
        [word for name, value in options.items() for word in (f"--{name}", str(value))]
    )
    torch.manual_seed(options["seed"])
    np.random.seed(options["seed"])  # noqa: NPY002 - OpenFGL draws from it
    with (
        tempfile.TemporaryDirectory() as folder,
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        data = _for_openfgl(graph, partition, split, Path(folder))
        start = time.perf_counter()
        with patch.object(trainer, "FGLDataset", lambda _: data), transforms:
            run = trainer.FGLTrainer(arguments)
        run.train()
        return time.perf_counter() - start, float(run.evaluation_result["best_test_accuracy"])


def _transforms_of_older_pyg() -> contextlib.AbstractContextManager[Any]:
    """OpenFGL's FedDEP hides nodes by a transform with ``__call__`` alone; PyG has since made
    ``forward`` abstract.
    """
    import torch_sparse  # type: ignore[import-not-found]  # noqa: F401 - without it PyG's NeighborSampler fails later
    from openfgl.flcore.feddep._utils import HideGraph  # type: ignore[import-not-found]

    return patch.object(HideGraph, "__abstractmethods__", frozenset())


def _for_openfgl(graph: Graph, partition: Partition, split: Split, folder: Path) -> SimpleNamespace:
    """What OpenFGL's reader of datasets would have, with the files of its split."""
    parts = pyg.client_data(graph, partition, split)
    whole = pyg.to_data(graph, split)
    whole.num_global_classes = graph.num_classes
    splits = folder / "node_cls" / "default_split"
    splits.mkdir(parents=True)
    for i, data in enumerate(parts):
        data.num_global_classes = graph.num_classes
        data.global_map = dict(enumerate(data.n_id.tolist()))
        for part in PARTS:
            mask = data[f"{part}_mask"]
            torch.save(mask, splits / f"{part}_{i}.pt")
            (splits / f"glb_{part}_{i}.pkl").write_bytes(pickle.dumps(data.n_id[mask].tolist()))
            del data[f"{part}_mask"]
        del data.n_id
    return SimpleNamespace(local_data=parts, global_data=whole, processed_dir=str(folder))


def measure(
    dataset: str,
    path: Path,
    methods: Sequence[str],
    peers: Sequence[str],
    turns: int,
    setting: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """A row a method and peer: medians of seconds over ``turns`` turns."""
    graph = Graph.load(path)
    config = load(CONFIG)
    partition = louvain(graph, CLIENTS, SEED, config["partition"]["delta"])
    split = random_split(graph.num_nodes, _specification("fedavg", dataset)["split"], SEED)
    scaled = build_task(
        _specification("fedavg", dataset), graph, split, partition, ""
    ).graph  # as ours scales it
    rows = []
    for method in methods:
        runs: dict[str, Callable[[], tuple[float, float]]] = {
            "ours": partial(ours, method, dataset, graph, partition, split, *setting),
            "openfgl": partial(openfgl, method, scaled, partition, split),
        }
        if method in ("fedavg", "fedsage_plus"):
            steps = math.ceil(len(split.train) / CLIENTS / BATCH)
            runs["openfgl_steps"] = partial(openfgl, method, scaled, partition, split, steps)
        if method == "fedavg":
            runs["plain"] = partial(plain, scaled, partition, split)
        runs = {name: run for name, run in runs.items() if name == "ours" or name in peers}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
        for _ in range(turns):
            for name, run in runs.items():
                found[name].append(run())
        seconds = {
            name: statistics.median(second for second, _ in results)
            for name, results in found.items()
        }
        for name in runs:
            if name != "ours":
                rows.append(
                    {
                        **{"dataset": dataset, "method": method, "peer": name},
                        **{
                            "ours_s": seconds["ours"],
                            "peer_s": seconds[name],
                            "faster_by": seconds[name] / seconds["ours"],
                        },
                        **{
                            "ours_accuracy": found["ours"][0][1],
                            "peer_accuracy": found[name][0][1],
                        },
                    }
                )
    return rows


def main() -> None:
    """Measure, and write ``whole_runs.csv`` and its provenance."""
    parser = parser_of(__doc__)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--turns", type=int, default=3, help="times that each is run")
    parser.add_argument(
        "--setting",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="more of ours, such as optimizer=adam",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rows = []
    with patch.object(time, "perf_counter", time.process_time):
        for dataset in tqdm(arguments.datasets):
            path = arguments.graphs / f"{dataset}.safetensors"
            rows += measure(
                dataset,
                path,
                arguments.methods,
                arguments.peers,
                arguments.turns,
                arguments.setting,
            )
    table = pd.DataFrame(rows)
    write_csv(arguments.output / "whole_runs.csv", table, digits=4)
    made = {
        **environment("cpu", arguments.threads),
        "turns": arguments.turns,
        "setting": arguments.setting,
    }
    write_json(arguments.output / "whole_runs.provenance.json", made)
    print(table.to_string(index=False), file=sys.stderr)


if __name__ == "__main__":
    main()
