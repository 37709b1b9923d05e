"""FedAvg of the setting ``field`` beside FederatedScope's: the same partition, split, features and
steps; accuracy and seconds.

    pip install --no-deps git+https://github.com/alibaba/FederatedScope
    pip install --no-deps yacs fvcore iopath grpcio protobuf pympler rdkit portalocker
    python -m benchmarks.federatedscope_runs --datasets cora citeseer pubmed --seeds 0 1 2

10 clients by Louvain, 20/40/40 within clients, a GCN of width 64 on all training nodes, 100 rounds
of 3 steps of plain SGD, one thread.  FederatedScope counts a client as one example, so both weigh
clients alike.  Both test the received model on clients' own test nodes, at the round best on their
validation nodes, and in the same rounds.  Seconds are the process's own, which other work on the
machine does not change.
"""

import logging
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch_geometric.utils import add_self_loops
from tqdm import tqdm

from benchmarks.arguments import parser_of
from benchmarks.parity import CLIENTS, run_of, trained
from feddep.datasets import pyg
from feddep.experiment.provenance import environment
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.utils.csv_files import write_csv
from feddep.utils.errors import DataError
from feddep.utils.files import write_json

SETTING = "field,optimizer=sgd,learning_rate=0.5,weight_decay=0.0,client_weights=equal"


def theirs(
    graph: Graph, partition: Partition, split: Split, setting: dict[str, Any], seed: int
) -> tuple[float, float]:
    """Seconds and test accuracy of FederatedScope's run in one process.

    Raises:
        DataError: if FederatedScope, or what it imports, is not installed.
    """
    os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = (
        "python"  # its messages were compiled by an older protobuf
    )
    try:
        import federatedscope.gfl.trainer  # type: ignore[import-not-found]  # noqa: F401 - registers trainers of nodes
        from federatedscope.core.auxiliaries import runner_builder, utils, worker_builder  # type: ignore[import-not-found]
        from federatedscope.core.configs.config import global_cfg  # type: ignore[import-not-found]
        from federatedscope.core.data import StandaloneDataDict  # type: ignore[import-not-found]
    except ImportError as error:
        raise DataError(
            f"FederatedScope cannot be imported ({error}); --help says what to install"
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        options = {
            **{
                "use_gpu": False,
                "verbose": 0,
                "seed": seed,
                "outdir": folder,
                "data.type": "cora",
                "dataloader.type": "pyg",
            },
            **{
                "federate.mode": "standalone",
                "federate.client_num": CLIENTS,
                "federate.total_round_num": setting["rounds"],
            },
            **{
                "early_stop.patience": 0,
                "eval.metrics": ["acc"],
                "eval.best_res_update_round_wise_key": "val_acc",
            },
            **{"model.type": "gcn", "model.task": "node", "model.out_channels": graph.num_classes},
            **{"model.hidden": setting["hidden_channels"], "model.dropout": setting["dropout"]},
            **{"criterion.type": "CrossEntropyLoss", "trainer.type": "nodefullbatch_trainer"},
            **{"train.local_update_steps": setting["local_epochs"], "train.optimizer.type": "SGD"},
            "train.optimizer.lr": setting["learning_rate"],
        }
        config = global_cfg.clone()
        config.merge_from_list([each for pair in options.items() for each in pair])
        start = time.process_time()
        data = {}
        for number, part in enumerate(pyg.client_data(graph, partition, split), 1):
            # As its reader of datasets does.
            part.edge_index = add_self_loops(part.edge_index, num_nodes=part.num_nodes)[0]
            data[number] = {"data": part, "train": [part], "val": [part], "test": [part]}
        utils.setup_seed(seed)
        config.freeze()
        logging.disable(logging.CRITICAL)
        runner = runner_builder.get_runner(
            data=StandaloneDataDict(data, config),
            server_class=worker_builder.get_server_cls(config),
            client_class=worker_builder.get_client_cls(config),
            config=config.clone(),
            client_configs=None,
        )
        found = runner.run()
        return time.process_time() - start, float(
            found["client_summarized_weighted_avg"]["test_acc"]
        )


def measure(dataset: str, path: Path, seed: int) -> dict[str, Any]:
    """Accuracies and seconds of both."""
    ours = trained(run_of(SETTING, dataset, "raw", "fedavg", seed), path)
    their_seconds, their_accuracy = theirs(
        ours.graph, ours.partition, ours.split, ours.setting, seed
    )
    return {
        **{"dataset": dataset, "seed": seed, "ours_s": ours.seconds, "theirs_s": their_seconds},
        **{"ours_before": ours.reported["local_before"]["best"], "theirs_before": their_accuracy},
    }


def main() -> None:
    """Measure, and write ``federatedscope.csv``, means over seeds and medians of seconds, and its
    provenance.
    """
    parser = parser_of(__doc__)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    what = [(dataset, seed) for dataset in arguments.datasets for seed in arguments.seeds]
    runs = pd.DataFrame(
        [measure(name, arguments.graphs / f"{name}.safetensors", seed) for name, seed in tqdm(what)]
    )
    groups = runs.groupby("dataset", sort=False)
    table = (
        groups.size()
        .rename("seeds")
        .to_frame()
        .join(groups[["ours_before", "theirs_before"]].mean())
    )
    table = table.join(groups[["ours_s", "theirs_s"]].median()).reset_index()
    table["faster_by"] = table["theirs_s"] / table["ours_s"]
    write_csv(arguments.output / "federatedscope.csv", table, digits=4)
    write_json(
        arguments.output / "federatedscope.provenance.json", environment("cpu", arguments.threads)
    )
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
