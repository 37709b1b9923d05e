"""What there is to compute: the runs and partitions that a configuration asks for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from feddep.config import variants
from feddep.config.loading import (
    PARTITION,
    STUDIES,
    Config,
    entry,
    main_tables,
    table_datasets,
    variations,
)
from feddep.datasets.public_graphs import REGISTRY, clients_of
from feddep.graph.partitioners import parts_of
from feddep.methods import registry
from feddep.methods.method import CROSS_CLIENT_EDGES, Method
from feddep.training.config import check_metric
from feddep.utils.errors import ConfigError


@dataclass(frozen=True)
class Run:
    """One training run: a row of the results.

    Attributes:
        setting: name of the hyperparameters, a key of ``settings``, or a variant of one
            (:mod:`feddep.config.variants`).
        dataset: a key of ``datasets``, or a variant of one.
        clients: number of clients M, or None where method, split and evaluation are of the whole
            graph.
        method: a key of ``methods``, or a variant of a method.
        seed: one of ``seeds``; determines split, partition, initial weights and every draw.
    """

    setting: str
    dataset: str
    clients: int | None
    method: str
    seed: int

    @property
    def path(self) -> str:
        """What it is called on progress bars, such as ``feddep/cora/m5/fedavg/seed0``."""
        return f"{self.setting}/{self.dataset}/{self.scope}/{self.method}/seed{self.seed}"

    @property
    def scope(self) -> str:
        """What the method is trained on, as a part of the path: ``whole``, or ``m5`` for 5
        clients.
        """
        return "whole" if self.clients is None else f"m{self.clients}"

    @property
    def partition(self) -> "PartitionSpec | None":
        """The partition that it is trained on; None for the whole graph."""
        if self.clients is None:
            return None
        return PartitionSpec(variants.restricted(self.dataset, PARTITION), self.clients, self.seed)


@dataclass(frozen=True)
class PartitionSpec:
    """One division of a dataset among clients.

    Attributes:
        dataset: a key of ``datasets``, or a variant of one with another partition, such as
            ``cora,partition=random``.
        clients: number of clients M.
        seed: one of ``seeds``.
    """

    dataset: str
    clients: int
    seed: int


@cache
def runs(config: Config) -> list[Run]:
    """Every run of the main tables, in the order of their keys; a whole-graph method runs once, not
    once for each M.
    """
    return _runs_of(config, [{"settings": {setting: {}}} for setting in main_tables(config)])


@cache
def study_runs(config: Config, study: str) -> list[Run]:
    """Every run of a study, each once, in the order of its keys."""
    return _runs_of(config, config["studies"][study]["runs"])


def all_runs(config: Config) -> list[Run]:
    """Every run of the main tables and of the studies without code of their own, each once."""
    names = [name for name, study in config["studies"].items() if not has_code(study["kind"])]
    return list(
        dict.fromkeys([*runs(config), *(run for name in names for run in study_runs(config, name))])
    )


def has_code(kind: str) -> bool:
    """Whether studies of a kind are made by code of their own: a folder ``studies/GROUP/KIND`` that
    measures runs.
    """
    return any(STUDIES.glob(f"*/{kind}/measure.py"))


def datasets(config: Config) -> list[str]:
    """Every dataset of the main tables, each once."""
    return list(
        dict.fromkeys(
            variants.base(name)
            for setting in main_tables(config)
            for name in table_datasets(config, setting)
        )
    )


def partitions(config: Config) -> list[PartitionSpec]:
    """Every partition that a run of the main tables is trained on, each once."""
    return list(dict.fromkeys(run.partition for run in runs(config) if run.partition is not None))


def _runs_of(config: Config, blocks: Iterable[Mapping[str, Any]]) -> list[Run]:
    return list(dict.fromkeys(run for block in blocks for run in _runs(config, block)))


def _runs(config: Config, block: Mapping[str, Any]) -> Iterator[Run]:
    """The runs of a block; what it does not name is as in the main table, the first where it names
    no setting.
    """
    tables = main_tables(config)

    def names(section: str, default: Iterable[str]) -> list[str]:
        return variations(config, section, block.get(section, {name: {} for name in default}))

    for setting in names("settings", list(tables)[:1]):
        base, options = variants.base(setting), entry(config, "settings", setting)
        for dataset in names("datasets", table_datasets(config, base)):
            if public := REGISTRY.get(variants.base(dataset)):
                check_metric(options["metric"], public.classes, dataset)
            by_client = (
                entry(config, "datasets", dataset)["split"] == "within_clients"
                or options["evaluation"] == "owners"
            )
            for method in names("methods", tables.get(base, [])):
                found = registry.find(variants.base(method))
                found.check_setting(options["encoder"], options["full_batch"])
                partitioned = found.partitioned or by_client
                for clients in block.get("clients", config["clients"]) if partitioned else [None]:
                    _check_clients(config, dataset, clients, found)
                    for seed in block.get("seeds", config["seeds"]):
                        yield Run(setting, dataset, clients, method, seed)


def _check_clients(config: Config, dataset: str, clients: int | None, method: Method) -> None:
    """Several graphs, one a client, have their own number of clients; neither they nor overlapping
    clients have edges between.
    """
    if clients is not None and entry(config, "datasets", dataset)["partition"] == "overlap":
        parts_of(clients)
        method.check_overlap()
    known = clients_of(variants.base(dataset))
    if not known or entry(config, "datasets", dataset)["partition"] != "given":
        return
    if clients not in (None, len(known)):
        raise ConfigError(
            f"clients is {clients}, but {dataset} is {len(known)} graphs, one a client: "
            f"{', '.join(known)}"
        )
    if CROSS_CLIENT_EDGES in method.assumes:
        raise ConfigError(
            f"{method.name} needs edges between clients, but {dataset} is {len(known)} graphs "
            "without any"
        )
