"""The Python API: load or bring a graph, partition it, run a method and read the result, without
the workflow.

>>> from feddep import api
>>> graph = api.load_dataset("cora")  # doctest: +SKIP
>>> split, partition = api.split(graph), api.partition(graph, clients=5)  # doctest: +SKIP
>>> api.run("fedavg", graph, split, partition, setting={"rounds": 20}).accuracy  # doctest: +SKIP

A run with the same options and seed has the same numbers as in the workflow, given the same machine
and number of threads.
"""

import dataclasses
import json
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd
from torch import Tensor

from feddep.config import loading, models
from feddep.config.sentences import checked, show
from feddep.datasets import own_files, parsing, public_graphs, pyg
from feddep.datasets.own_files import partition_of as load_partition
from feddep.datasets.own_files import split_of as load_split
from feddep.datasets.pyg import from_data as from_pyg
from feddep.datasets.pyg import split_of as split_from_pyg
from feddep.datasets.synthetic import planted_partition
from feddep.experiment import keys, plan, runs
from feddep.experiment.inputs import make_inputs
from feddep.experiment.provenance import environment
from feddep.experiment.tasks import build_task, choose_device, device_name
from feddep.graph import partitioners
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import Split, draw
from feddep.judging.predictions import save as save_predictions
from feddep.methods import plugins, registry
from feddep.methods.method import Method
from feddep.reporting import results as recorded_runs
from feddep.training.config import PROTOCOLS, TrainingConfig
from feddep.training.evaluation import is_after_better, is_unfinished
from feddep.training.summary import summary
from feddep.training.task import Task
from feddep.utils.csv_files import write_csv
from feddep.utils.errors import ConfigError, DataError, PartitionError, nearest
from feddep.utils.files import read_json, write_json
from feddep.utils.parameters import Parameters
from feddep.utils.torch_state import default_state

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = [
    "Graph",
    "Partition",
    "Result",
    "Split",
    "client_data",
    "compare",
    "curves",
    "datasets",
    "from_pyg",
    "load_dataset",
    "load_graph",
    "load_partition",
    "load_plugin",
    "load_split",
    "methods",
    "parameters",
    "partition",
    "results",
    "run",
    "save_predictions",
    "split",
    "split_from_pyg",
    "synthetic_graph",
    "to_pyg",
]


@dataclass(frozen=True, eq=False)
class Result:
    """Result of a run; of several models, the mean over them.

    Attributes:
        accuracy: share of the test nodes that get their class on the global graph, at the ``best``
            round on validation and at the ``last``.
        validation: the same of the validation nodes, as the clients classify them.
        validation_after: the same with each client's own model at the end of the round's local
            steps; not a number unless the setting's evaluation is ``owners``.
        local_before: the same of the test nodes, each classified by its owner on its own subgraph,
            with the model that it receives: before the local steps of the next round.
        local_after: the same, with each client's own model at the end of the round's local steps.
        macro_f1: of the test nodes at the best round: on the ``global`` graph, and each classified
            by its owner ``before`` and ``after`` the local steps.
        history: a row a round: ``round`` from 1, mean training ``loss`` in nats a node, accuracies
            ``validation``, ``test``, ``local_before`` and ``local_after``.
        communication: what crossed the boundary, a row each ``client``, ``direction`` and ``kind``,
            with the number of ``messages`` and ``bytes``.
        clients: a row a client with facts about it and the accuracy of its own model; empty for a
            shared model.
        weights: of each model at its best round, by name; those of a client's own model begin with
            ``client0.`` …
        specification: everything that determines the run, beside the graph, the split and the
            partition.
        seconds: time of the training, by the clock; without that of steps before it.
        stalled: whether it is no better than a constant answer, and so no result
            (:class:`feddep.training.task.RunResult`).
        unfinished: whether more rounds might be better
            (:func:`feddep.training.evaluation.is_unfinished`).
    """

    accuracy: dict[str, float]
    validation: dict[str, float]
    validation_after: dict[str, float]
    local_before: dict[str, float]
    local_after: dict[str, float]
    macro_f1: dict[str, float]
    history: pd.DataFrame
    communication: pd.DataFrame
    clients: pd.DataFrame
    weights: dict[str, Tensor]
    specification: dict[str, Any]
    seconds: float
    stalled: bool
    unfinished: bool

    @property
    def owners(self) -> float:
        """Accuracy of the test nodes as their owners classify them, by the models that are better
        on validation nodes: those before or those after the local steps."""
        after = is_after_better(self.validation["best"], self.validation_after["best"])
        return (self.local_after if after else self.local_before)["best"]

    def to_frame(self) -> pd.DataFrame:
        """One row, such as :func:`compare` gives: what ran, its accuracies at the round best on
        validation, what it took.
        """
        measured = {
            "test": self.accuracy["best"],
            "local_before": self.local_before["best"],
            "local_after": self.local_after["best"],
            "validation": self.validation["best"],
        }
        if not math.isnan(self.validation_after["best"]):
            measured["owners"] = self.owners
        row = {
            "method": self.specification["method"]["name"],
            "seed": self.specification["seed"],
            **measured,
            "bytes": int(self.communication["bytes"].sum()),
            "seconds": round(self.seconds, 2),
            "stalled": self.stalled,
            "unfinished": self.unfinished,
        }
        return pd.DataFrame([row])

    def __str__(self) -> str:
        """Three lines: what ran, its accuracies, what it took."""
        setting = self.specification["setting"]
        size = self.communication.groupby("direction").bytes.sum()
        clients = self.communication.client.nunique() or len(self.clients)
        ran = [
            self.specification["method"]["name"],
            f"encoder {setting['encoder']}",
            f"{setting['rounds']} rounds",
        ]
        ran += [f"{clients} clients"] * (clients > 0) + [f"seed {self.specification['seed']}"]
        whole, before, after = (
            each["best"] for each in (self.accuracy, self.local_before, self.local_after)
        )
        return (
            f"{', '.join(ran)}\n"
            f"test accuracy at the round best on validation: global {whole:.3f}, local "
            f"{before:.3f} before and {after:.3f} after "
            "the local "
            f"steps{'; stalled: no better than a constant answer' if self.stalled else ''}\n"
            f"{size.get('up', 0):,} bytes up, {size.get('down', 0):,} bytes down, "
            f"{self.seconds:.1f} seconds"
        )


def datasets() -> list[str]:
    """Names of the datasets that :func:`load_dataset` knows."""
    return list(public_graphs.REGISTRY)


def methods() -> dict[str, str]:
    """Names of the methods that :func:`run` knows, with their titles in tables."""
    plugins.use()
    return {name: method.title for name, method in registry.methods().items()}


def load_plugin(path: str | Path) -> list[str]:
    """Make what a Python file declares known, as the key ``plugins`` of a configuration does:
    methods (``docs/guide/own-method.md``) and other parts (``docs/guide/own-parts.md``).

    Returns:
        Names of its methods.

    Raises:
        ConfigError: if the file is missing, cannot be imported, or declares nothing, or the name of
            what it declares is taken.
    """
    plugins.use([str(path)])
    return plugins.declared_in(path)


def parameters(method: str) -> dict[str, Any]:
    """The parameters of a method with their defaults; ``config/README.md`` explains them.

    Raises:
        ConfigError: if there is no such method.
    """
    plugins.use()
    return registry.find(method).parameters().model_dump(mode="json")


def load_dataset(
    name: str, cache: str | Path | None = None, mirror: str | Path | None = None
) -> Graph:
    """A public dataset in canonical node order; downloaded and verified when it is first asked for.

    Args:
        name: one of :func:`datasets`.
        cache: folder for raw files and graphs; by default ``feddep`` in the user's cache folder.
        mirror: a folder or URL with the raw files, tried before the public sources; by default the
            environment variable ``FEDDEP_DATA_MIRROR``, where it is set.

    Raises:
        ConfigError: if there is no such dataset.
        DataError: if no source has its files.
    """
    folder = (
        Path(cache)
        if cache is not None
        else Path(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "feddep")
    )
    return parsing.load(name, folder.expanduser(), mirror)


def load_graph(path: str | Path) -> Graph:
    """The graph in files of one's own (:func:`feddep.datasets.own_files.read`).

    Raises:
        DataError: if there is no such file or folder, or it holds no graph.
    """
    plugins.use()
    return own_files.read(path)


def synthetic_graph(**options: Any) -> Graph:
    """A planted-partition graph with bags of words as features
    (:func:`feddep.datasets.synthetic.planted_partition`).

    Args:
        options: those of the configuration's key ``synthetic``; what is left out has its default.

    Raises:
        ConfigError: if an option is unknown or out of its range.
    """
    return planted_partition(**_checked(models.Synthetic, options, "synthetic").model_dump())


def to_pyg(graph: Graph, split: Split | None = None) -> "Data":
    """A graph as PyTorch Geometric's ``Data``, with the masks of a split.

    Raises:
        DataError: if PyTorch Geometric is not installed.
    """
    return pyg.to_data(graph, split and split.checked(graph))


def client_data(graph: Graph, partition: Partition, split: Split | None = None) -> "list[Data]":
    """The clients' subgraphs as PyTorch Geometric's ``Data``, for code other than this project's.

    Raises:
        DataError: if PyTorch Geometric is not installed.
        PartitionError: if the partition is of another graph.
    """
    return pyg.client_data(
        graph, partition.checked(graph.num_nodes), split and split.checked(graph)
    )


def split(
    graph: Graph,
    seed: int = 0,
    train: float = 0.6,
    val: float = 0.2,
    test: float = 0.2,
    *,
    method: str = "random",
    partition: Partition | None = None,
) -> Split:
    """Training, validation and test nodes (:func:`feddep.graph.split.draw`).

    Args:
        graph: the graph.
        seed: of the draw.
        train: share of the training nodes.
        val: share of the validation nodes.
        test: share of the test nodes.
        method: ``random``, ``class_balanced`` or ``within_clients``; or a plugin's.
        partition: of the clients that ``within_clients`` means.

    Raises:
        ConfigError: if a share is not above 0, leaves no node, or they sum to more than 1.
    """
    plugins.use()
    chosen = _checked(models.SplitOptions, {"method": method, "train": train, "val": val}, "split")
    shares = {**chosen.shares(), "test": test}
    return draw(graph, chosen.method, shares, _integer("seed", seed), partition)


def partition(
    graph: Graph,
    clients: int,
    seed: int = 0,
    delta: int = 20,
    *,
    method: str = "louvain",
    engine: str | None = None,
    beta: float = 1.0,
    shards: int = 2,
) -> Partition:
    """Partition a graph among clients (:func:`feddep.graph.partitioners.partition`).

    Args:
        graph: the graph.
        clients: number of clients M.
        seed: of all random draws.
        delta: of ``louvain``: how far a client's number of nodes may be above n / M.
        method: ``louvain``, ``random``, ``dirichlet``, ``shards``, ``metis`` or ``overlap``;
            ``given``, as the data of the graph say; or a plugin's.
        engine: of ``louvain``: ``python-louvain`` or ``igraph``, which is for large graphs; by
            default the latter above 20,000 nodes.
        beta: of ``dirichlet``: its concentration; the smaller, the more are labels skewed.
        shards: of ``shards``: pieces of one or two classes a client.

    Raises:
        ConfigError: if an option is none of these or out of its range.
        PartitionError: if the graph has too few nodes for so many clients and these options.
    """
    plugins.use()
    options = _checked(
        models.PartitionOptions,
        {"method": method, "delta": delta, "engine": engine, "beta": beta, "shards": shards},
        "partition",
    ).model_dump()
    return partitioners.partition(
        graph, _integer("clients", clients, 1), _integer("seed", seed), **options
    )


def run(
    method: str,
    graph: Graph,
    split: Split,
    partition: Partition | None = None,
    *,
    setting: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    features: str = "raw",
    labelled: float | None = None,
    seed: int = 0,
    device: str = "auto",
    threads: int = 1,
    on_round: Callable[[dict[str, float]], None] | None = None,
) -> Result:
    """Train and test a method.

    Args:
        method: one of :func:`methods`.
        graph: the global graph.
        split: its training, validation and test nodes.
        partition: which client holds which node; may be left out for a method that is trained on
            the whole graph.
        setting: fields of :class:`feddep.training.config.TrainingConfig` that differ from their
            defaults.
        parameters: parameters of the method that differ from their defaults.
        features: how features are scaled: ``raw``, ``row`` or ``minmax``
            (:func:`feddep.graph.scaling.scale`).
        labelled: share of all nodes whose label may be trained on; None for all training nodes.
        seed: what initial weights and every draw follow from.
        device: ``auto``, ``cpu`` or ``cuda``.
        threads: of PyTorch; most graphs are too small for several.
        on_round: called after each round with a row of :attr:`Result.history`.

    Raises:
        ConfigError: for a method, field, parameter or value that does not exist.
        DataError: if the split is none of this graph (:meth:`feddep.graph.split.Split.checked`).
        PartitionError: if a partition is needed and none of this graph is given
            (:meth:`feddep.graph.partition.Partition.checked`).
        DivergenceError: if training leads to numbers that are not finite.
    """
    with default_state(_integer("threads", threads, 1)):
        found, chosen, task, specification = prepare(
            method,
            graph,
            split,
            partition,
            setting=setting,
            parameters=parameters,
            features=features,
            labelled=labelled,
            seed=seed,
            device=device,
        )
        result = found.run(dataclasses.replace(task, on_round=on_round), chosen)
    reported = summary(result)
    best = reported["best_round"]
    if "validation_after" in reported:
        ends = (reported[name]["best"] for name in ("validation", "validation_after"))
        best = best[int(is_after_better(*ends))]
    return Result(
        accuracy=reported["accuracy"],
        validation=reported["validation"],
        validation_after=reported.get("validation_after", {"best": math.nan, "last": math.nan}),
        **{name: reported[name] for name in ("local_before", "local_after", "macro_f1")},
        history=pd.DataFrame(reported["curve"]),
        communication=pd.DataFrame(
            reported["communication"], columns=["client", "direction", "kind", "messages", "bytes"]
        ),
        clients=pd.DataFrame(reported["clients"]),
        weights=result.weights(),
        specification=specification,
        seconds=result.history.seconds,
        stalled=result.stalled,
        unfinished=is_unfinished(best, len(reported["curve"]["round"])),
    )


def compare(
    methods: Sequence[str],
    graph: Graph | str | Path,
    clients: int | None = None,
    seeds: int = 3,
    *,
    partition: str | Partition | Callable[[Graph, int, int], Any] | None = None,
    split: str | Split | None = None,
    protocol: Literal["global", "field"] = "global",
    setting: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    features: str = "raw",
    tuned: int | None = None,
    defaults: bool = False,
    device: str = "auto",
    threads: int = 1,
    output: Path | None = None,
) -> pd.DataFrame:
    """Train methods on the same splits and partitions, for seeds 0, 1, …, which draw them and the
    initial weights.

    A method for which a search of this protocol is recorded in the folder ``results`` has what that
    chose on other graphs, out of the box.

    Args:
        methods: of :func:`methods`, or Python files with methods of one's own.
        graph: a graph, the name of a public dataset, or the path of a graph of one's own.
        clients: number of clients M; by default 5, or 10 in the ``field``, or as many as a
            ``given`` partition has.
        seeds: number of repetitions.
        partition: ``louvain``, ``random``, ``dirichlet``, ``shards``, ``metis`` or ``overlap``; or
            ``given``, as the data say; by default ``given`` for a dataset that is several graphs,
            one a client, else ``louvain``. Or a partition, the same for all seeds; or a function of
            the graph, the number of clients and the seed that gives the owner of each node.
        split: ``random`` (the default), ``class_balanced`` or ``within_clients``; or ``masks``, in
            these files, of several a set the next with each seed. Or a split, the same for all
            seeds.
        protocol: ``global``: 60/20/20, one model tested on the global graph; ``field``: what most
            papers share (:data:`feddep.training.config.FIELD`), 20/40/40 within clients, each
            client's model tested on its own subgraph.
        setting: as in :func:`run`, where it differs from the protocol's.
        parameters: of the methods that have them, where they differ from their defaults.
        features: as in :func:`run`.
        tuned: choose the hyperparameters of each method among so many trials first, as a study with
            a ``search`` does, in the folder of ``output``, where page and tables are then; the same
            call goes on where it stopped.
        defaults: give every method the protocol's setting and its own defaults.
        device: as in :func:`run`.
        threads: as in :func:`run`.
        output: a CSV file that has the rows of all finished runs after each; beside it a JSON file
            says what they are of, and with what they were made.

    Returns:
        A row a method and seed: ``method``, ``seed``; accuracies at the round best on validation:
        ``test`` on the global graph, ``local_before``, ``local_after`` (:class:`Result`) and
        ``validation``; in the field also ``owners``, that of the two by which owners would
        classify; ``bytes``; ``seconds``; ``stalled``; ``unfinished``; ``configuration``, how its
        hyperparameters were chosen; and, where no search was made, ``train_nodes`` and
        ``test_nodes``, their numbers.

    Raises:
        ConfigError: as :func:`run`, or if no method has one of the parameters, or ``tuned`` is
            given without ``output``, or with what a search cannot have.
        DataError: if there is no such graph, or ``output`` has another comparison.
        PartitionError: if the graph has too few nodes for so many clients.
    """
    from feddep import tuning  # slow to import: it draws

    names, given = named(methods), dict(parameters or {})
    seeds = _integer("seeds", seeds, 1)
    if clients is not None:
        clients = _integer("clients", clients, 1)
    _check_known(given, names)
    if protocol not in PROTOCOLS:
        raise ConfigError(f"protocol is {show(protocol)}; allowed: {', '.join(PROTOCOLS)}")
    preset = PROTOCOLS[protocol]
    source = os.fspath(graph) if isinstance(graph, str | os.PathLike) else ""
    path = source if source not in {"", *public_graphs.REGISTRY} else None
    if not isinstance(graph, Graph):
        graph = _read_graph(source)
    drawn: Any = partition
    if callable(partition):
        among = clients or preset["clients"]
        drawn = [
            Partition(partition(graph, among, seed), among).checked(graph.num_nodes)
            for seed in range(seeds)
        ]
    asked: dict[str, Any] = {
        **{"clients": clients, "seeds": seeds, "protocol": protocol, "features": features},
        **{"setting": dict(setting or {}), "partition": drawn, "split": split},
    }
    objects = not source or isinstance(drawn, Partition | list) or isinstance(split, Split)
    if tuned is not None and (output is None or given or objects):
        raise ConfigError(
            "tuned needs output, and the graph by its name or path; a search sets parameters "
            "itself, and draws partitions and splits by its seeds"
        )
    recorded = {} if defaults or tuned else tuning.out_of_the_box(source, protocol)
    chosen = {name: recorded[name] for name in names if name in recorded}
    if output is not None:
        what = {"methods": names, "parameters": given, "tuned": tuned, "out_of_the_box": chosen}
        _claim(output, {**asked, **what, "graph": graph.fingerprint}, device, threads)
        if tuned is not None:
            asked |= {"device": device, "threads": threads}
            found = tuning.search(names, source, output.parent, tuned, **asked)
            write_csv(output, found)
            return found
    division, clients, shares = _division(graph, source, clients, drawn, split, preset)
    common = {**preset["setting"], **asked["setting"]}
    partitioned = (
        common.get("evaluation") == "owners"
        or getattr(shares, "method", "") == "within_clients"
        or any(registry.find(name).partitioned for name in names)
    )
    rows = []
    for seed in range(seeds):
        of_seed = division[seed] if isinstance(division, list) else division
        _, nodes, owners = make_inputs(
            graph, shares, of_seed if partitioned else None, clients, seed, path
        )
        sizes = {"train_nodes": len(nodes.train), "test_nodes": len(nodes.test)}
        for name in names:
            changes, tried = chosen.get(name, ({}, {}))
            fields = registry.find(name).parameters.model_fields
            own = {key: value for key, value in given.items() if key in fields}
            result = run(
                name,
                graph,
                nodes,
                owners,
                setting={**common, **changes, **asked["setting"]},
                parameters={**tried, **own},
                features=features,
                seed=seed,
                device=device,
                threads=threads,
            )
            configuration = plan.ELSEWHERE if name in chosen else tuning.DEFAULTS
            rows.append(result.to_frame().assign(**sizes, configuration=configuration))
            if output is not None:
                write_csv(output, pd.concat(rows, ignore_index=True))
    return pd.concat(rows, ignore_index=True)


def _check_known(given: Iterable[str], names: Sequence[str]) -> None:
    """Refuse parameters that none of the methods has."""
    known = {field for name in names for field in registry.find(name).parameters.model_fields}
    for parameter in given:
        if parameter not in known:
            raise ConfigError(
                f"parameters.{parameter} is no parameter of {', '.join(names)}; "
                f"{nearest(parameter, known)}"
            )


def _division(
    graph: Graph,
    source: str,
    clients: int | None,
    drawn: Any,
    split: str | Split | None,
    preset: Mapping[str, Any],
) -> tuple[
    models.PartitionOptions | Partition | list[Partition], int | None, models.SplitOptions | Split
]:
    """The partition of a comparison's seeds, its number of clients and its split, where one is not
    asked for that of the dataset or the protocol.
    """
    division = drawn or ("given" if public_graphs.clients_of(source) else "louvain")
    if clients is None and division != "given":
        clients = preset["clients"]
    if not isinstance(division, Partition | list):
        division = _checked(models.PartitionOptions, {"method": division}, "partition")
    if isinstance(split, Split):
        return division, clients, split.checked(graph)
    options = {**preset["split"], **({"method": split} if split else {})}
    return division, clients, _checked(models.SplitOptions, options, "split")


def _read_graph(source: str) -> Graph:
    """The public dataset of a name, or the graph of a path."""
    if source in public_graphs.REGISTRY:
        return load_dataset(source)
    if not os.path.exists(source):
        raise ConfigError(
            f"graph is {source}, which is no file, no folder and no public dataset; "
            f"{nearest(source, public_graphs.REGISTRY)}"
        )
    return load_graph(source)


def _claim(output: Path, asked: Mapping[str, Any], device: str, threads: int) -> None:
    """Write beside a file what its comparison is, and with what it is made.

    Raises:
        DataError: if the file is of another one.
    """
    beside = output.with_suffix(".provenance.json")
    made = json.loads(json.dumps(asked, default=_plain))
    if output.exists() and not (beside.exists() and read_json(beside)["comparison"] == made):
        raise DataError(
            f"{output} is there, and of another comparison; name another place, or delete it"
        )
    write_json(beside, {"comparison": made, **environment(device_name(device), threads)})


def _plain(value: Any) -> Any:
    """An argument that JSON does not have: a number of NumPy or PyTorch, or a digest of nodes."""
    if isinstance(value, Partition | Split):
        arrays = {name: of for name, of in vars(value).items() if name != "facts"}
        return keys.digest({name: np.asarray(of).tolist() for name, of in arrays.items()})
    return value.item()


def results(protocol: str, config: str | Path = loading.CONFIGURATION) -> pd.DataFrame:
    """The recorded runs of a protocol, from the tables that git keeps: a row for each study that
    has a run, with what it is of, in full, and what it measured.

    Args:
        protocol: a setting of the configuration, such as ``field``, with whatever studies change
            of it.
        config: the configuration, in the working folder of a clone.

    Returns:
        Those columns of :func:`feddep.reporting.results.schema` that these runs have;
        ``docs/reference/results.md``.

    Raises:
        ConfigError: if the configuration cannot be read or has no such setting.
        DataError: if a table is damaged.
    """
    return recorded_runs.results(loading.load(config), protocol)


def curves(
    protocol: str, keys: Sequence[str], config: str | Path = loading.CONFIGURATION
) -> pd.DataFrame:
    """The curves of recorded runs, a row a run and round: ``key``, ``round``, ``loss`` and the
    accuracies ``validation``, ``test``, ``local_before`` and ``local_after``.

    Args:
        protocol: as in :func:`results`.
        keys: of the runs, such as a column ``key`` of :func:`results`.
        config: as in :func:`results`.

    Raises:
        ConfigError: if the configuration cannot be read.
        DataError: if a file is damaged.
    """
    tables = Path(loading.load(config)["records"]["directory"])
    return runs.read_curves(tables / protocol, keys)


def named(methods: Sequence[str]) -> list[str]:
    """Names of methods, where a Python file stands for those that it declares.

    Raises:
        ConfigError: as :func:`load_plugin`, or if there is no such method, or it is named twice.
    """
    names: list[str] = []
    for each in map(str, [methods] if isinstance(methods, str) else methods):
        own = load_plugin(each) if each.endswith(".py") else [each]
        if not own:
            raise ConfigError(f"{each} declares no methods; name a method, or a file with some")
        if {*own} & {*names}:
            raise ConfigError(f"{each} is named twice; a method is not compared with itself")
        names += own
    plugins.use()
    return [registry.find(name).name for name in names]


def prepare(
    method: str,
    graph: Graph,
    split: Split,
    partition: Partition | None = None,
    *,
    setting: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    features: str = "raw",
    labelled: float | None = None,
    seed: int = 0,
    device: str = "auto",
) -> tuple[Method, Parameters, Task, dict[str, Any]]:
    """Prepare what :func:`run` calls: the method, its parameters and the task; and the
    specification. Arguments and errors are its.
    """
    plugins.use()
    found = registry.find(method)
    chosen = _checked(found.parameters, parameters or {}, "parameters")
    seed = _integer("seed", seed)
    specification = {
        "dataset": _checked(models.Dataset, {"features": features, "labelled": labelled}).in_key(),
        "setting": _checked(TrainingConfig, setting or {}, "setting").in_key(),
        "method": {"name": method, **chosen.model_dump(mode="json")},
        "seed": seed,
        **plugins.identity_of(method, encoder=(setting or {}).get("encoder", "")),
    }
    sets, owners = split.checked(graph), None
    if partition is not None:
        owners = partition.checked(graph.num_nodes)
    elif found.partitioned:
        raise PartitionError(f"{method} needs a partition of the graph; api.partition makes one")
    task = build_task(specification, graph, sets, owners, method, choose_device(device))
    return found, chosen, task, specification


_Model = TypeVar("_Model", bound=Parameters)


def _checked(model: type[_Model], given: Mapping[str, Any], *path: str) -> _Model:
    """An instance of a model; its fields may be numbers of NumPy and PyTorch."""
    plain = {
        key: value.item() if getattr(value, "shape", None) == () else value
        for key, value in given.items()
    }
    return checked(model, plain, path)


def _integer(name: str, value: Any, least: int = 0) -> int:
    """An integer, which may be NumPy's or PyTorch's, of at most 63 bits."""
    try:
        found = operator.index(value)
    except TypeError:
        found = least - 1
    if isinstance(value, bool) or not least <= found < 2**63:
        raise ConfigError(
            f"{name} is {show(value)}; an integer from {least} to 2^63 − 1 is allowed"
        )
    return found
