"""The field's methods beside OpenFGL's own: the same partition, split, features and training;
accuracy and seconds, in turns.

    pip install openfgl-lib munkres cytoolz scikit-network dtaidistance pynndescent
    python -m benchmarks.parity --datasets cora citeseer --methods local fedavg fedproto

10 clients by Louvain, 20/40/40 within clients, the setting ``field``: a GCN of width 64 on all
training nodes, Adam, 3 local epochs, 100 rounds, one thread.  Accuracy is of clients' own test
nodes, ``before`` the local steps of a round and ``after`` them, each at the round best on
validation nodes.  Each method has the options that make both codes alike (``CASES``); what they
cannot make alike is noted.  OpenFGL is unchanged but for its reader of datasets and the
replacements that a case names.  Its clients weigh by all their nodes, ours by training nodes.
Seconds are the process's own, which other work on the machine does not change.

A seed is measured once: ``parity_runs.csv`` has all, and ``parity.csv`` means, sample standard
deviations and medians of seconds.
"""

import contextlib
import itertools
import pkgutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from scipy.stats import ttest_rel
from torch_geometric.utils import scatter
from tqdm import tqdm

from benchmarks.arguments import parser_of
from benchmarks.stages import CONFIG, seconds_of
from benchmarks.whole_runs import openfgl
from feddep.config.loading import load
from feddep.experiment import plan
from feddep.experiment.provenance import environment
from feddep.experiment.tasks import build_task
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition, louvain
from feddep.graph.split import Split, within_clients_split
from feddep.training.summary import summary
from feddep.utils.csv_files import write_csv
from feddep.utils.files import write_json

CLIENTS, SPLIT = 10, "within_clients,train=0.2,val=0.4"
PLAIN_SGD = "field,optimizer=sgd,learning_rate=0.5,weight_decay=0.0"


class Case(NamedTuple):
    """A method in both codes.

    Attributes:
        ours: our method, with the options that make it like theirs.
        note: why it has these, and what still differs.
        theirs: OpenFGL's name, where it is another.
        setting: the setting of both.
        replaced: dotted names in OpenFGL, and functions from what is there to what takes its place.
    """

    ours: str
    note: str = ""
    theirs: str | None = None
    setting: str = "field"
    replaced: tuple[tuple[str, Callable[[Any], Any]], ...] = ()


CASES = {
    "local": Case("local", "their clients start from weights of their own", theirs="isolate"),
    "fedavg": Case("fedavg"),
    "fedprox": Case("fedprox,mu=0.001", "their mu"),
    "scaffold": Case(
        "scaffold",
        "plain SGD for both: theirs divides steps of Adam by the step size and fails",
        setting=PLAIN_SGD,
        replaced=(("openfgl.task.base.Adam", lambda _: torch.optim.SGD),),
    ),
    "moon": Case("moon"),
    "feddc": Case("feddc,correction=openfgl", "their slips"),
    "fedproto": Case(
        "fedproto,mean=openfgl,prototype_weight=7",
        "their slip; their distance is a sum over classes, 7 on Cora, where ours is a mean over "
        "nodes; their clients start from "
        "weights of their own",
    ),
    "fedgta": Case("fedgta,orders=10", "their orders; they propagate from training nodes alone"),
    "fedpub": Case(
        "fedpub,regularizers=released",
        "their slip; their network has a linear layer behind two convolutions",
    ),
    "adafgl": Case(
        "adafgl,alpha=0.5,beta=0.0,alike=0.995,knowledge=logits",
        "their alpha, beta and distillation; alike as their 0.999 after a second softmax; three "
        "steps a round in step 2; "
        "their matrix product, which loads a library of their own machine, is replaced",
        replaced=(
            (
                "openfgl.flcore.adafgl.op.csr_sparse_dense_matmul",
                lambda _: lambda a, x: a.dot(x).astype("float32"),
            ),
            (
                "openfgl.flcore.adafgl.client.AdaFGLClient.adafgl_postprocess",
                lambda step: lambda client: [step(client) for _ in range(client.args.num_epochs)],
            ),
        ),
    ),
    "fgssl": Case(
        "fgssl,contrast_weight=0.0",
        "they leave out the contrast, and distil differences of neighbours; a loss that they do "
        "not use is left out here, as it "
        "fails where a client's last node has no edge; 20 rounds",
        setting="field,rounds=20",
        replaced=(("openfgl.flcore.fgssl.client.simi_kd", lambda _: lambda *_: None),),
    ),
    "fedtad": Case(
        "fedtad,topology=walk_ids",
        "their slip; 10 rounds, as theirs takes ten seconds a round; they divide reliabilities "
        "by a client's sum over classes, "
        "their walks leave the edges, and each client's distance has a dropout mask of its own, "
        "which all change ours by less "
        "than 0.004 in the mean",
        setting="field,rounds=10",
    ),
    "gcfl_plus": Case("gcfl_plus"),
}


def theirs(
    case: Case, name: str, graph: Graph, partition: Any, split: Any, **options: Any
) -> dict[str, Any]:
    """Seconds and accuracies of OpenFGL's run, and the error where there is one."""
    stand_in_for_extensions()
    from openfgl.task.node_cls import NodeClsTask  # type: ignore[import-not-found]

    received, train = [], NodeClsTask.train

    def recording(task: Any) -> None:
        """A client's training, after it has tested the model that it received."""
        task.model.eval()
        with torch.no_grad():
            right = task.model(task.data)[1].argmax(dim=1) == task.data.y
        received.append(
            [[int(right[mask].sum()), int(mask.sum())] for mask in (task.val_mask, task.test_mask)]
        )
        train(task)

    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.object(time, "perf_counter", time.process_time))
        stack.enter_context(patch.object(NodeClsTask, "train", recording))
        for target, value in case.replaced:
            stack.enter_context(patch(target, value(pkgutil.resolve_name(target))))
        try:
            seconds, after = openfgl(
                case.theirs or name, graph, partition, split, model="gcn", **options
            )
        except (IndexError, AttributeError) as error:
            return {"error": f"{type(error).__name__}: {error}"}
    found = {"theirs_s": seconds, "theirs_after": after, "theirs_before": np.nan, "error": None}
    if len(received) == options["num_rounds"] * partition.num_clients:
        right, nodes = np.moveaxis(
            np.reshape(received, (-1, partition.num_clients, 2, 2)).sum(axis=1), 2, 0
        )
        best = right[:, 0].argmax()
        found["theirs_before"] = right[best, 1] / nodes[best, 1]
    return found


def stand_in_for_extensions() -> None:
    """What OpenFGL and authors' codes import of torch-scatter and torch-sparse; of them they call a
    sum alone.
    """
    modules = {
        name: sys.modules.setdefault(name, ModuleType(name))
        for name in ("torch_scatter", "torch_sparse")
    }
    modules["torch_scatter"].scatter = modules["torch_scatter"].scatter_add = scatter  # type: ignore[attr-defined]
    for name in ("SparseTensor", "coalesce", "fill_diag", "matmul", "mul", "sum"):
        setattr(modules["torch_sparse"], name, type(name, (), {}))


class Trained(NamedTuple):
    """A run of ours, and what another code takes to run beside it.

    Attributes:
        setting: options of the training.
        graph: with features as they are scaled.
        partition: of the graph.
        split: of the graph.
        reported: what :func:`feddep.training.summary.summary` says of the run.
        seconds: the process's own.
    """

    setting: dict[str, Any]
    graph: Graph
    partition: Partition
    split: Split
    reported: dict[str, Any]
    seconds: float


def run_of(setting: str, dataset: str, features: str, method: str, seed: int) -> plan.Run:
    """A run of ours in the field's split."""
    names = {"setting": setting, "dataset": f"{dataset},features={features}", "split": SPLIT}
    return plan.one_run(load(CONFIG), method, CLIENTS, seed, **names)


def trained(run: plan.Run, path: Path) -> Trained:
    """Train a run of ours on the graph in a file, partitioned by Louvain and split within
    clients.
    """
    graph, config = Graph.load(path), load(CONFIG)
    specification = run.specification
    partition = louvain(graph, CLIENTS, run.seed, config["partition"]["delta"])
    split = within_clients_split(graph, partition, specification["split"], run.seed)
    with patch.object(time, "perf_counter", time.process_time):
        seconds, result = seconds_of(specification, graph, partition, split)
    scaled = build_task(specification, graph, split, partition, "").graph
    return Trained(
        specification["setting"], scaled, partition, split, summary(result), sum(seconds.values())
    )


def measure(case: Case, key: dict[str, Any], path: Path) -> dict[str, Any]:
    """Accuracies and seconds of both, of a key's method, setting and seed."""
    run = run_of(key["setting"], key["dataset"], key["features"], case.ours, key["seed"])
    ours = trained(run, path)
    setting, reported = ours.setting, ours.reported
    options = {
        "num_rounds": setting["rounds"],
        "hid_dim": setting["hidden_channels"],
        "epochs": setting["local_epochs"],
        "lr": setting["learning_rate"],
        "weight_decay": setting["weight_decay"],
        "seed": key["seed"],
    }
    return {
        "ours_before": reported["local_before"]["best"],
        "ours_after": reported["local_after"]["best"],
        "ours_s": ours.seconds,
        **theirs(case, key["method"], ours.graph, ours.partition, ours.split, **options),
    }


def summarised(runs: pd.DataFrame, notes: Mapping[str, str]) -> pd.DataFrame:
    """A row a method, with its note: means of accuracies, ``std_`` sample standard deviations, and
    medians of seconds.

    ``p_before`` and ``p_after`` are of paired t-tests over seeds, ours against theirs.
    """
    keys_of = ["dataset", "features", "method", "ours", "setting"]
    groups = runs.groupby(keys_of, sort=False)
    accuracies = [f"{who}_{when}" for when in ("before", "after") for who in ("ours", "theirs")]
    means, spreads = groups[accuracies].mean(), groups[accuracies].std().add_prefix("std_")
    table = (
        groups.size()
        .rename("seeds")
        .to_frame()
        .join([means, spreads, groups[["ours_s", "theirs_s"]].median()])
    )
    for when in ("before", "after"):
        table[f"{when}_less_theirs"] = table[f"ours_{when}"] - table[f"theirs_{when}"]
        table[f"p_{when}"] = groups[[f"ours_{when}", f"theirs_{when}"]].apply(_paired)
    table["faster_by"] = table["theirs_s"] / table["ours_s"]
    table["error"] = groups["error"].first()
    table = table.reset_index()
    return table.assign(note=table["method"].map(notes))


def _paired(both: pd.DataFrame) -> float:
    """The p-value of a paired t-test between two columns; NaN for one row, or where one is
    missing.
    """
    return float(ttest_rel(*both.to_numpy().T).pvalue) if len(both) > 1 else np.nan


def measure_once(
    target: Path,
    todo: Sequence[tuple[dict[str, Any], Callable[[], dict[str, Any]]]],
    notes: Mapping[str, str],
    threads: int,
) -> None:
    """Measure what is not measured, each a key and how, and write after each run all runs to
    ``*_runs.csv`` beside a table, :func:`summarised` to it, and provenance.
    """
    of_runs = target.with_name(f"{target.stem}_runs.csv")
    began = time.perf_counter()
    rows: list[Any] = pd.read_csv(of_runs).to_dict("records") if of_runs.exists() else []
    for key, measured in tqdm(todo):
        if any(key.items() <= row.items() for row in rows):
            continue
        rows.append(key | measured())
        print(rows[-1], file=sys.stderr, flush=True)
        runs = pd.DataFrame(rows)
        write_csv(of_runs, runs)
        write_csv(target, summarised(runs, notes), digits=4)
        made = {**environment("cpu", threads), "seconds": round(time.perf_counter() - began)}
        write_json(target.with_suffix(".provenance.json"), made)


def main() -> None:
    """Measure the methods that are asked for, as ``parity.csv``."""
    parser = parser_of(__doc__)
    parser.add_argument("--methods", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--features", nargs="+", choices=["raw", "row"], default=["raw"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--rounds", type=int, help="of methods whose case names no number")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    settings = {
        name: f"{case.setting},rounds={arguments.rounds}"
        if arguments.rounds and "rounds=" not in case.setting
        else case.setting
        for name, case in CASES.items()
    }
    todo = []
    given = (arguments.seeds, arguments.datasets, arguments.features, arguments.methods)
    for seed, dataset, features, method in itertools.product(*given):
        case, path = CASES[method], arguments.graphs / f"{dataset}.safetensors"
        named = {"dataset": dataset, "features": features, "method": method, "ours": case.ours}
        named |= {"setting": settings[method], "seed": seed}
        todo.append((named, partial(measure, case, named, path)))
    notes = {name: case.note for name, case in CASES.items()}
    measure_once(arguments.output / "parity.csv", todo, notes, arguments.threads)


if __name__ == "__main__":
    main()
