"""The command line: ``python -m feddep.flower cut …`` and ``python -m feddep.flower train …``."""

import argparse
import importlib.util
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from feddep import api
from feddep.config.models import PartitionOptions, SplitOptions
from feddep.config.sentences import checked
from feddep.experiment.inputs import make_inputs
from feddep.flower import FederationError
from feddep.utils.errors import FeddepError
from feddep.utils.files import check_replaceable, read_arrays, read_json, write_json
from feddep.utils.parameters import key_values

CUT = """\
Cut a graph into a folder for each client and one for the server, which gets no data. Example:

  python -m feddep.flower cut fedavg --graph cora --clients 3 --set rounds=3 \\
    --simulate --output participants
"""
TRAIN = """\
Train what cut wrote by a SuperLink and a SuperNode for each client, on this machine. Example:

  python -m feddep.flower train participants --output federated.json
"""
SIMULATION = "simulation"
"""The folder of what cut has simulated."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 1 where something went wrong that a user can act on,
    with a sentence on stderr.
    """
    parsed = _parser().parse_args(arguments)
    try:
        if importlib.util.find_spec("flwr") is None:
            raise FederationError(
                'Flower is not installed; pip install "feddep-bench[federation]" installs it'
            )
        parsed.command(parsed)
    except (FeddepError, OSError) as error:
        print(f"python -m feddep.flower: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m feddep.flower", description="Clients as processes, on Flower."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    raw = argparse.RawDescriptionHelpFormatter
    cuts = commands.add_parser(
        "cut",
        help="cut a graph into a folder for each client",
        description=CUT,
        formatter_class=raw,
    )
    cuts.add_argument("method", help="fedavg, feddep or fedsage_plus")
    cuts.add_argument(
        "--graph", required=True, help="name of a dataset, or a file or folder of your own"
    )
    cuts.add_argument("--clients", type=int, required=True, metavar="M", help="number of clients")
    cuts.add_argument(
        "--partition",
        default="louvain",
        help="how the graph is divided: louvain, random, dirichlet, shards, metis or overlap",
    )
    cuts.add_argument(
        "--features", default="raw", help="how features are scaled: raw, row or minmax"
    )
    cuts.add_argument(
        "--seed", type=int, default=0, help="of the split, the partition and the training"
    )
    cuts.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="of the training, such as rounds=3",
    )
    cuts.add_argument(
        "--parameter", action="append", default=[], metavar="KEY=VALUE", help="of the method"
    )
    cuts.add_argument(
        "--simulate",
        action="store_true",
        help="also train in this process, for train to compare with",
    )
    cuts.add_argument(
        "--output", type=Path, required=True, metavar="DIRECTORY", help="where the folders go"
    )
    cuts.set_defaults(command=_cut)
    trains = commands.add_parser(
        "train", help="train what cut wrote", description=TRAIN, formatter_class=raw
    )
    trains.add_argument("directory", type=Path, help="what cut wrote")
    trains.add_argument("--output", type=Path, metavar="FILE", help="results to write, JSON")
    trains.add_argument(
        "--insecure",
        action="store_true",
        help="without TLS and without authentication of SuperNodes",
    )
    trains.add_argument(
        "--patience",
        type=float,
        default=3600,
        metavar="SECONDS",
        help="how long to wait for all clients (3600)",
    )
    trains.set_defaults(command=_train)
    return parser


def _cut(given: argparse.Namespace) -> None:
    from feddep.flower.folders import THREADS, cut
    from feddep.flower.server_app import write_outcome

    graph = (
        api.load_dataset(given.graph)
        if given.graph in api.datasets()
        else api.load_graph(given.graph)
    )
    division = checked(PartitionOptions, {"method": given.partition}, ("partition",))
    _, split, partition = make_inputs(graph, SplitOptions(), division, given.clients, given.seed)
    method, parameters, task, specification = api.prepare(
        given.method,
        graph,
        split,
        partition,
        setting=key_values(given.set),
        parameters=key_values(given.parameter),
        features=given.features,
        seed=given.seed,
        device="cpu",
    )
    cut(task, specification["method"], given.output)
    shutil.rmtree(given.output / SIMULATION, ignore_errors=True)
    if given.simulate:
        torch.set_num_threads(THREADS)
        write_outcome(given.output / SIMULATION, method.run(task, parameters))


def _train(given: argparse.Namespace) -> None:
    from feddep.flower.processes import LocalFederation

    if given.output:
        check_replaceable(given.output, [given.directory])
    with LocalFederation(given.directory, tls=not given.insecure) as local:
        outcome = local.run(given.patience)
    if given.output:
        write_json(given.output, outcome)
    print(
        f"{len(outcome['loss'])} rounds; best validation accuracy "
        f"{max(outcome['validation']):.4f}\n"
    )
    each = ["client", "direction"]
    bytes_of = {
        name: pd.DataFrame(outcome[name]).groupby(each)["bytes"].sum()
        for name in ("communication", "wire")
    }
    table = pd.DataFrame({"counted": bytes_of["communication"], "on the wire": bytes_of["wire"]})
    print(
        table.assign(ratio=(table["on the wire"] / table["counted"]).round(3))
        .reset_index()
        .to_string(index=False),
        "\n",
    )
    if (given.directory / SIMULATION).exists():
        print(compared(given.directory, outcome))


def compared(directory: Path, outcome: Mapping[str, Any]) -> str:
    """How the outcome of a federation compares with the simulation, in a sentence.

    Raises:
        FederationError: if they differ in a bit.
    """
    ours, theirs = (
        read_arrays(directory / name / "weights.safetensors") for name in ("server", SIMULATION)
    )
    simulated = read_json(directory / SIMULATION / "outcome.json")
    different = [name for name in simulated if outcome[name] != simulated[name]]
    different += [f"weights {name}" for name in theirs if (ours[name] != theirs[name]).any()]
    if different:
        raise FederationError(
            f"the federation differs from the simulation in {', '.join(different)}"
        )
    return "Equal to the simulation, number for number."


if __name__ == "__main__":
    sys.exit(main())
