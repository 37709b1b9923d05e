"""The field's methods beside their authors' own code: the same partition, split, features and
options; accuracy.

    git clone https://github.com/JinheonBaek/FED-PUB CODES/FED-PUB
    git clone https://github.com/blgpb/FedIIH CODES/FedIIH
    git clone https://github.com/xkLi-Allen/FedGTA CODES/FedGTA
    git clone https://github.com/TsingZ0/FedTGP CODES/FedTGP
    python -m benchmarks.authors --codes CODES

They were read and run at commits 302980de, b628008b, f8f68284 and c77cbbb3.

10 clients by Louvain, 20/40/40 within clients, 100 rounds, and else what the authors set for Cora.
Their clients and servers run as they are, in turns in one process without a GPU; their partitions,
splits and loops over processes are replaced.  Accuracy is of all clients' test nodes,
``before`` the local steps of a round and ``after`` them, each at the round best on validation
nodes.

A seed is measured once: ``authors_runs.csv`` has all, and ``authors.csv`` means, sample standard
deviations and paired t-tests.
"""

import contextlib
import functools
import importlib
import io
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
import torch

from benchmarks.arguments import parser_of
from benchmarks.parity import (
    CLIENTS,
    Trained,
    measure_once,
    run_of,
    stand_in_for_extensions,
    trained,
)
from feddep.datasets import pyg

Scores = dict[str, np.ndarray]
"""``before`` and ``after`` where known: accuracies on validation and test nodes of each round and
client, shape (R, K, 2).
"""


def fedpub_or_fediih(ours: Trained, graphs: list[Any], seed: int, options: list[str]) -> Scores:
    """Scores of FED-PUB's or FedIIH's code, which is built on it."""
    _seed(seed)
    settings = importlib.import_module("main")
    with tempfile.TemporaryDirectory() as folder:
        fixed = [
            *("--dataset", "Cora", "--mode", "disjoint", "--n-clients", str(CLIENTS)),
            *("--frac", "1.0", "--n-eps", str(ours.setting["local_epochs"]), "--n-workers", "1"),
            *("--n-rnds", str(ours.setting["rounds"]), "--seed", str(seed), "--base-path", folder),
        ]
        with patch.object(sys, "argv", ["main.py", *fixed, *options]):
            args = settings.set_config(settings.Parser().parse())
        args.n_feat, args.n_clss = ours.graph.num_features, ours.graph.num_classes
        parts = Path(args.data_path, f"{args.dataset}_{args.mode}", str(CLIENTS))
        parts.mkdir(parents=True)
        for k, graph in enumerate(graphs):
            torch.save({"client_data": graph}, parts / f"partition_{k}.pt")
        models = f"models.{args.model}"
        shared: dict[Any, Any] = {}
        server = importlib.import_module(f"{models}.server").Server(args, shared, 0)
        new_client = importlib.import_module(f"{models}.client").Client
        clients = [new_client(args, k, 0, shared) for k in range(CLIENTS)]
        for client in clients:
            client.loader.n_workers = 0
        for number in range(args.n_rnds):
            server.on_round_begin(number)
            for k, client in enumerate(clients):
                client.switch_state(k)
                client.on_receive_message(number)
                client.on_round_begin()
                client.save_state()
            server.on_round_complete(set(range(CLIENTS)))
        logs = [client.log for client in clients]

    def of_rounds(start: str, stop: slice) -> np.ndarray:
        names = [f"{start}_{part}_acc" for part in ("val", "test")]
        return np.transpose([[log[name][stop] for name in names] for log in logs], (2, 0, 1))

    scores = {"after": of_rounds("rnd_local", slice(None))}
    steps, times = divmod(len(logs[0]["ep_local_val_acc"]), args.n_rnds)
    if times == 0 and steps == args.n_eps + 1:  # FED-PUB tests before the first step, too
        scores["before"] = of_rounds("ep_local", slice(None, None, steps))
    return scores


def fedgta(ours: Trained, graphs: list[Any], seed: int, options: list[str]) -> Scores:
    """Scores of FedGTA's code."""
    rounds, steps = ours.setting["rounds"], ours.setting["local_epochs"]
    fixed = ["--num_rounds", str(rounds), "--gnn_num_epochs", str(steps)]
    with patch.object(sys, "argv", ["main.py", *fixed, *options]):
        args = importlib.import_module("config").args
    nodes = importlib.import_module("tasks.node_cls")
    found: list[tuple[float, float]] = []

    def recorded(*arguments: Any) -> tuple[float, float, Any]:
        """Their test of a client, kept."""
        validation, test, output = evaluate(*arguments)
        found.append((validation, test))
        return validation, test, output

    for graph in graphs:
        n, ends = graph.num_nodes, graph.edge_index.numpy()
        graph.adj = sp.csr_matrix((np.ones(ends.shape[1], np.float32), tuple(ends)), (n, n))
        graph.train_idx, graph.val_idx = graph.train_mask, graph.val_mask
        graph.test_idx = graph.test_mask
    dataset = SimpleNamespace(
        input_dim=ours.graph.num_features,
        output_dim=ours.graph.num_classes,
        global_data=SimpleNamespace(num_nodes=ours.graph.num_nodes),
        subgraphs=graphs,
    )
    _seed(seed)
    code = "federated.fedgta.fedgta"
    server = importlib.import_module(f"{code}_server").FedGTAServer(dataset, args, "cpu")
    new_client = importlib.import_module(f"{code}_client").FedGTAClient
    clients = [new_client(k, dataset, args, "cpu") for k in range(CLIENTS)]
    trainer = importlib.import_module("federated.trainer").NormalizeTrainer
    evaluate = nodes.evaluate
    with patch.object(nodes, "evaluate", recorded):
        trainer(server, clients, args, "cpu").normalize_train()
    # Each client tests after each of its steps, and all of them what they receive.
    tests = np.reshape(found, (rounds, CLIENTS * (steps + 1), 2))
    in_steps = tests[:, : CLIENTS * steps].reshape(rounds, CLIENTS, steps, 2)
    return {"after": in_steps[:, :, -1], "before": tests[:, CLIENTS * steps :]}


class FeatureModel(torch.nn.Module):
    """A network of features alone, in the two parts that FedTGP's code asks of a model."""

    def __init__(self, args: Any, _: int) -> None:
        super().__init__()
        hidden = torch.nn.Linear(args.num_features, args.feature_dim)
        self.base = torch.nn.Sequential(hidden, torch.nn.ReLU())
        self.head = torch.nn.Linear(args.feature_dim, args.num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.base(x))


def fedtgp(ours: Trained, graphs: list[Any], seed: int, options: list[str]) -> Scores:
    """Scores of FedTGP's code, which is made for images; nodes' features stand for them."""
    del options
    setting = ours.setting
    args = SimpleNamespace(
        **{"algorithm": "FedTGP", "dataset": "nodes", "device": "cpu", "goal": "", "lamda": 1.0},
        **{"num_classes": ours.graph.num_classes, "num_features": ours.graph.num_features},
        **{"num_clients": CLIENTS, "join_ratio": 1.0, "random_join_ratio": False, "eval_gap": 1},
        **{"global_rounds": setting["rounds"], "local_epochs": setting["local_epochs"]},
        **{"local_learning_rate": setting["learning_rate"], "batch_size": 10**9},
        **{"feature_dim": setting["hidden_channels"], "server_epochs": 100},
        **{"margin_threthold": 100.0, "time_select": False, "time_threthold": 0, "auto_break": 0},
        **{"client_drop_rate": 0, "train_slow_rate": 0, "send_slow_rate": 0},
        save_folder_name="temp",
    )
    tested = "val"
    found: list[list[Any]] = []

    def data_of(_: str, k: int, is_train: bool = True) -> list[Any]:
        """What a client trains on, or what is tested now."""
        graph = graphs[k]
        mask = graph[f"{'train' if is_train else tested}_mask"]
        return list(zip(graph.x[mask], graph.y[mask], strict=True))

    def scores_of(part: str) -> Any:
        """Accuracies of clients with the prototypes that they received."""
        nonlocal tested
        tested = part
        _, nodes, right, _ = server.test_metrics()
        return np.divide(right, nodes)

    def evaluate() -> None:
        """Test validation and test nodes."""
        found.append([scores_of("val"), scores_of("test")])
        server.rs_test_acc.append(0.0)  # whose largest they print

    _seed(seed)
    standing_in("utils.data_utils", read_client_data=data_of)
    standing_in("flcore.trainmodel.models", BaseHeadSplit=FeatureModel)
    standing_in("h5py")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        server = importlib.import_module("flcore.servers.servertgp").FedTGP(args, 0)
        for client in server.clients:  # all of its nodes in a step, of which it drops a rest
            client.batch_size = client.train_samples
        server.evaluate, server.save_results = evaluate, lambda: None
        server.train()
    return {"before": np.transpose(found[1:], (0, 2, 1))}  # none are received in the first round


def standing_in(name: str, **attributes: Any) -> None:
    """Put a module with attributes where another would be imported."""
    sys.modules[name] = module = ModuleType(name)
    vars(module).update(attributes)


class Case(NamedTuple):
    """A method in both codes.

    Attributes:
        folder: of the code within CODES.
        theirs: runs it.
        options: of its command line.
        ours: our method, with the options that make it like theirs.
        setting: of ours, likewise.
        features: how they are scaled.
        note: what still differs.
        replaced: dotted names that their code uses, and what takes their place.
    """

    folder: str
    theirs: Callable[[Trained, list[Any], int, list[str]], Scores]
    options: list[str]
    ours: str
    setting: str
    features: str
    note: str
    replaced: tuple[tuple[str, Any], ...] = ()


FEDGTA = Case(
    "FedGTA",
    fedgta,
    ["--moment_type", "hybrid", "--num_moments", "6", "--gm_alpha", "0.5"],
    "fedgta",
    "field,encoder=gamlp,layers=3",
    "raw",
    "PReLU between their layers, ReLU between ours; their attention over hops mixes nodes",
)
CASES = {
    "fedpub": Case(
        "FED-PUB",
        fedpub_or_fediih,
        ["--model", "fedpub", "--clsf-mask-one", "--laye-mask-one", "--norm-scale", "3"],
        "fedpub,tau=3.0,regularizers=released,compared=embeddings",
        "field,local_epochs=1,weight_decay=1e-6,hidden_channels=128",
        "row",
        "their network has a linear layer behind two convolutions",
    ),
    "fediih": Case(
        "FedIIH/FedIIH_2",
        fedpub_or_fediih,
        ["--model", "fedhvae"],
        "fediih",
        "field,local_epochs=1,learning_rate=0.02,weight_decay=0.005,hidden_channels=128,"
        "layers=4,dropout=0.3",
        "row",
        "they send the means of factors with dropout",
    ),
    "fedgta": FEDGTA,
    "fedgta_relu": FEDGTA._replace(
        note="ReLU between the layers of both; their attention over hops mixes nodes",
        replaced=(("torch.nn.PReLU", torch.nn.ReLU),),
    ),
    "fedtgp": Case(
        "FedTGP/system",
        fedtgp,
        [],
        "fedtgp,margin=released",
        "field,optimizer=sgd,learning_rate=0.1,weight_decay=0.0,encoder=mlp,dropout=0.0",
        "raw",
        "features alone, as their clients have images; plain SGD, as theirs",
    ),
}


def _seed(seed: int) -> None:
    for draws in (random.seed, np.random.seed, torch.manual_seed):
        draws(seed)


@contextlib.contextmanager
def imported_from(folder: Path) -> Iterator[None]:
    """Let a code be imported and run without a GPU, pauses or prints, and forget it afterwards, as
    others name their modules alike.
    """
    stand_in_for_extensions()
    standing_in("torchviz", make_dot=None)
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.object(sys, "path", [str(folder), *sys.path]))
        stack.enter_context(patch.object(torch.Tensor, "cuda", lambda tensor, *_, **__: tensor))
        stack.enter_context(patch.object(time, "sleep", lambda _: None))
        whole = functools.partial(torch.load, weights_only=False)
        stack.enter_context(patch.object(torch, "load", whole))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        try:
            yield
        finally:
            theirs = {path.stem for path in folder.iterdir()}
            for name in list(sys.modules):
                if name.partition(".")[0] in theirs:
                    del sys.modules[name]


def best(scores: np.ndarray, graphs: list[Any]) -> float:
    """The accuracy of all clients' test nodes, at the round best on their validation nodes, from
    scores of shape (R, K, 2).
    """
    nodes = np.array([[int(part.sum()) for part in (g.val_mask, g.test_mask)] for g in graphs])
    validation, test = ((scores * nodes).sum(axis=1) / nodes.sum(axis=0)).T
    return float(test[validation.argmax()])


def measure(case: Case, codes: Path, key: dict[str, Any], path: Path) -> dict[str, Any]:
    """Accuracies and seconds of both, of a key's seed."""
    run = run_of(case.setting, key["dataset"], case.features, case.ours, key["seed"])
    ours = trained(run, path)
    graphs = pyg.client_data(ours.graph, ours.partition, ours.split)
    with contextlib.ExitStack() as stack:
        for replaced in case.replaced:
            stack.enter_context(patch(*replaced))
        stack.enter_context(imported_from(codes / case.folder))
        start = time.process_time()
        scores = case.theirs(ours, graphs, key["seed"], case.options)
        seconds = time.process_time() - start
    found = {"ours_s": ours.seconds, "theirs_s": seconds, "error": None}
    for when in ("before", "after"):
        found[f"ours_{when}"] = ours.reported[f"local_{when}"]["best"]
        found[f"theirs_{when}"] = best(scores[when], graphs) if when in scores else np.nan
    return found


def main() -> None:
    """Measure the methods that are asked for, as ``authors.csv``."""
    parser = parser_of(__doc__)
    parser.add_argument("--codes", type=Path, required=True, help="folder of the authors' codes")
    parser.add_argument("--methods", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.set_defaults(datasets=["cora"])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    codes, todo = arguments.codes.resolve(), []
    for method in arguments.methods:
        if not (folder := codes / CASES[method].folder).is_dir():
            parser.error(f"{folder} is missing; --help says what to clone")
    given = (arguments.seeds, arguments.datasets, arguments.methods)
    for seed, dataset, method in itertools.product(*given):
        case, path = CASES[method], arguments.graphs / f"{dataset}.safetensors"
        named = {"dataset": dataset, "features": case.features, "method": method}
        named |= {"ours": case.ours, "setting": case.setting, "seed": seed}
        todo.append((named, functools.partial(measure, case, codes, named, path)))
    notes = {name: case.note for name, case in CASES.items()}
    measure_once(arguments.output / "authors.csv", todo, notes, arguments.threads)


if __name__ == "__main__":
    main()
