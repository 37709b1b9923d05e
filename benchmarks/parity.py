"""The field's methods beside OpenFGL's own: the same partition, split, features and training; accuracy and seconds, in turns.

    pip install openfgl-lib munkres cytoolz scikit-network dtaidistance pynndescent
    python -m benchmarks.parity --datasets cora citeseer --methods local fedavg fedproto --seeds 0 1 2 3 4

10 clients by Louvain, 20/40/40 within clients, the setting ``field``: a GCN of width 64 on all training nodes, Adam, 3 local
epochs, 100 rounds, one thread.  Accuracy is of clients' own test nodes; ``after``: with what their local steps made of their
models, at the round best on validation nodes, as OpenFGL has it by default; ``before``: with the model that a client receives,
where it is the server's.  OpenFGL is unchanged but for its reader of datasets; its clients weigh by all their nodes, ours by
training nodes.
"""

import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

from benchmarks.arguments import parser_of
from benchmarks.stages import CONFIG, seconds_of
from benchmarks.whole_runs import openfgl
from feddep.config.loading import load
from feddep.experiment import keys, plan
from feddep.experiment.provenance import environment
from feddep.experiment.tasks import build_task
from feddep.graph.graph import Graph
from feddep.graph.partition import louvain
from feddep.graph.split import within_clients_split
from feddep.training.summary import summary
from feddep.utils.csv_files import write_csv
from feddep.utils.files import write_json

CLIENTS, DATASET = 10, "{},features={},split=within_clients,split_train=0.2,split_val=0.4"
THEIRS = {"local": "isolate"}
"""What OpenFGL calls a method, where it is not as here."""


def measure(dataset: str, path: Path, method: str, features: str, seeds: Sequence[int]) -> dict[str, Any]:
    """A row: means over seeds of accuracies, and medians of seconds."""
    graph, config = Graph.load(path), load(CONFIG)
    setting = config["settings"]["field"]
    found: dict[str, list[float]] = {}
    for seed in seeds:
        run = plan.Run("field", DATASET.format(dataset, features), CLIENTS, method, seed)
        specification = keys.specification(config, run)
        partition = louvain(graph, CLIENTS, seed, config["partition"]["delta"])
        split = within_clients_split(graph, partition, specification["split"], seed)
        seconds, result = seconds_of(specification, graph, partition, split)
        reported = summary(result)
        row = {"ours_before": reported["local_before"]["best"], "ours_after": reported["local_after"]["best"]}
        row["ours_s"] = sum(seconds.values())
        scaled = build_task(specification, graph, split, partition, "").graph
        options = {"num_rounds": setting["rounds"], "hid_dim": setting["hidden_channels"], "seed": seed, "model": "gcn"}
        theirs = THEIRS.get(method.partition(",")[0], method.partition(",")[0])
        row["theirs_s"], row["theirs_after"] = openfgl(theirs, scaled, partition, split, setting["local_epochs"], **options)
        if theirs == "fedavg":
            mode = {"evaluation_mode": "global_model_on_local_data"}
            _, row["theirs_before"] = openfgl(theirs, scaled, partition, split, setting["local_epochs"], **options, **mode)
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    middle = {name: (statistics.median if name.endswith("_s") else statistics.mean)(values) for name, values in found.items()}
    gap = {"after_less_theirs": middle["ours_after"] - middle["theirs_after"], "faster_by": middle["theirs_s"] / middle["ours_s"]}
    return {"dataset": dataset, "features": features, "method": method, "seeds": len(seeds), **middle, **gap}


def main() -> None:
    """Measure, and write ``parity.csv`` and its provenance."""
    parser = parser_of(__doc__)
    parser.add_argument("--methods", nargs="+", default=["local", "fedavg"])
    parser.add_argument("--features", nargs="+", choices=["raw", "row"], default=["raw"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    what = [
        (dataset, method, features)
        for dataset in arguments.datasets
        for features in arguments.features
        for method in arguments.methods
    ]
    rows, began = [], time.perf_counter()
    for dataset, method, features in tqdm(what):
        rows.append(measure(dataset, arguments.graphs / f"{dataset}.safetensors", method, features, arguments.seeds))
        write_csv(arguments.output / "parity.csv", pd.DataFrame(rows), digits=4)
    made = {**environment("cpu", arguments.threads), "seconds": round(time.perf_counter() - began)}
    write_json(arguments.output / "parity.provenance.json", made)
    print(pd.DataFrame(rows).to_string(index=False), file=sys.stderr)


if __name__ == "__main__":
    main()
