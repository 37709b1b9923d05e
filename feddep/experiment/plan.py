"""The plan: the runs that a configuration asks for."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import pandas as pd

from feddep.config import entries, variants
from feddep.config.entries import Entry
from feddep.config.loading import STUDIES, Config, block_datasets, main_tables
from feddep.config.models import Dataset, PartitionOptions, SplitOptions
from feddep.datasets.public_graphs import REGISTRY, clients_of
from feddep.experiment import keys, search
from feddep.experiment.runs import are_trained, load
from feddep.graph.partitioners import parts_of
from feddep.methods.method import CROSS_CLIENT_EDGES, Method
from feddep.training.config import PROTOCOLS, TrainingConfig, check_metric
from feddep.utils import spaces
from feddep.utils.errors import ConfigError
from feddep.utils.parameters import Parameters


@dataclass(frozen=True)
class Run:
    """One training run, resolved: a row of the results.

    Attributes:
        setting: the hyperparameters of training.
        dataset: the graph.
        split: its training, validation and test nodes.
        partition: its division among clients, also where the run does not read it: tables set it
            beside those that do.
        clients: number of clients M, or None where method, split and evaluation are of the whole
            graph.
        method: the method with its parameters on that graph.
        seed: determines split, partition, initial weights and every draw.
        data: fingerprint of the graph (:func:`feddep.experiment.keys.data_fingerprint`).
        trial: whether a search chooses by it, so that a divergence is a result.
    """

    setting: Entry
    dataset: Entry
    split: Entry
    partition: Entry
    clients: int | None
    method: Entry
    seed: int
    data: str = field(repr=False)
    trial: bool = field(default=False, repr=False, compare=False)

    @property
    def path(self) -> str:
        """Its name on progress bars, such as ``feddep/cora/m5/fedavg/seed0``."""
        scope = "whole" if self.clients is None else f"m{self.clients}"
        return f"{self.setting}/{self.place}/{scope}/{self.method}/seed{self.seed}"

    @cached_property
    def place(self) -> Entry:
        """The dataset with its split and partition, as tables show it: what differs from its own
        spells out, such as ``cora,partition=random``.
        """
        options, changes = dict(self.dataset.options), {}
        for option, entry in (("split", self.split), ("partition", self.partition)):
            default = options.pop(option)
            for key, value in entry.options.items():
                name = option if key == "method" else f"{option}_{key}"
                options[name] = value
                if value != default[key]:
                    changes[name] = value
        label = variants.format_name(self.dataset.label, changes)
        return Entry(label, self.dataset.name, {**self.dataset.changes, **changes}, options)

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that tell it from other runs of a table."""
        return {
            "setting": self.setting.label,
            "dataset": self.place.label,
            "clients": self.clients,
            "method": self.method.label,
            "seed": self.seed,
        }

    @cached_property
    def specification(self) -> dict[str, Any]:
        """Everything that determines it but data and revisions
        (:func:`feddep.experiment.keys.specification`).
        """
        return keys.specification(
            dataset={"name": self.dataset.name, **_in_key(Dataset, self.dataset)},
            split=_split(self.split),
            partition=None
            if self.clients is None
            else {"clients": self.clients, **_in_key(PartitionOptions, self.partition)},
            setting=_in_key(TrainingConfig, self.setting),
            method={"name": self.method.name, **self.method.options},
            seed=self.seed,
        )

    @cached_property
    def key(self) -> str:
        """Its content key."""
        _, _, steps = self.method.configured
        return keys.run_key(self.specification, self.data, steps)

    @property
    def graph_key(self) -> str:
        """The content key of its graph."""
        return keys.graph_key(self.data)

    @cached_property
    def split_key(self) -> str:
        """The content key of its split."""
        return keys.split_key(self.specification, self.data)

    @cached_property
    def partition_key(self) -> str:
        """The content key of its partition; it must have clients."""
        return keys.partition_key(self.specification, self.data)


@cache
def _in_key(model: type[Parameters], entry: Entry) -> dict[str, Any]:
    return model(**entry.options).in_key()


@cache
def _split(entry: Entry) -> SplitOptions:
    return SplitOptions(**entry.options)


@cache
def runs(config: Config) -> list[Run]:
    """Every run of the main tables, in the order of their keys; a whole-graph method runs once, not
    once for each M.
    """
    return _runs_of(config, [{"settings": {setting: {}}} for setting in main_tables(config)])


def study_runs(config: Config, study: str) -> list[Run]:
    """Every run of a study that is known (:func:`stages`), those of the studies that it names
    first, each once, in the order of its keys.
    """
    named = [study_runs(config, name) for name in config["studies"][study]["studies"]]
    return list(dict.fromkeys(itertools.chain(*named, *stages(config, study))))


def stages(config: Config, study: str) -> list[list[Run]]:
    """A study's own runs, or up to three lists of those of a search, of which the next is known
    when all before are trained: the trials on one seed, the best on further seeds, and what was
    chosen on the final seeds.
    """
    entry = config["studies"][study]
    if not entry["search"]:
        return [_block_runs(config, study)]
    known = [list(itertools.chain(*_trials(config, study).values()))]
    if are_trained(config, known[0]):
        best = list(itertools.chain(*_finalists(config, study).values()))
        known.append(_on_seeds(best, entry["search_seeds"][1:]))
        if are_trained(config, known[1]):
            best = [trial for trial, *_ in _chosen(config, study).values()]
            final = [dataclasses.replace(run, trial=False) for run in best]
            known.append(_on_seeds(final, entry["search"]["seeds"] or config["seeds"]))
    return known


def choices(config: Config, study: str) -> pd.DataFrame:
    """What a search chose: a row a dataset and method.

    Returns:
        trials, their number; of these on the first seed stalled and diverged, which counts as
        stalled; the chosen_setting and chosen_method as they are spelled; validation, the mean over
        the search's seeds; median_validation, that of all trials on the first seed; the setting and
        method of the runner_up; lead, how much better the mean is than the runner-up's; ties, how
        many other finalists have the same mean; edge, the names whose chosen values are in the
        first or last 5 % of their range.
    """
    cells, rows = _trials(config, study), []
    of_all = load(config, list(itertools.chain(*cells.values()))).set_index("key")
    of_all["validation"] = of_all[["validation", "validation_after"]].max(axis=1)
    for (dataset, method), (chosen, runner_up, choice) in _chosen(config, study).items():
        trials = of_all.loc[[run.key for run in cells[dataset, method]]]
        edge = spaces.at_edge(_search_space(config, study), chosen.setting.options)
        found, *_ = chosen.method.configured
        edge += spaces.at_edge(found.search, chosen.method.options)
        rows.append(
            {
                "dataset": dataset,
                "method": method,
                "trials": len(trials),
                "stalled": int(trials["stalled"].sum()),
                "diverged": int(trials["validation"].isna().sum()),
                "chosen_setting": chosen.setting.label,
                "chosen_method": chosen.method.label,
                "validation": choice.validation,
                "median_validation": trials["validation"].median(),
                "runner_up_setting": runner_up.setting.label,
                "runner_up_method": runner_up.method.label,
                "lead": choice.lead,
                "ties": choice.ties,
                "edge": " ".join(edge),
            }
        )
    return pd.DataFrame(rows)


@cache
def _block_runs(config: Config, study: str) -> list[Run]:
    return _runs_of(config, config["studies"][study]["runs"])


Cells = dict[tuple[str, str], list[Run]]
"""Trials by dataset and method."""


@cache
def _trials(config: Config, study: str) -> Cells:
    """The trials of a search on its first seed."""
    entry = config["studies"][study]
    given = entry["search"]
    axes = {axis: given[axis] for axis in ("splits", "partitions") if axis in given}
    common = {**axes, "clients": [given["clients"]], "seeds": entry["search_seeds"][:1]}
    name, changes = variants.read(given["setting"])
    space, setting = _search_space(config, study), entries.one(config, "settings", given["setting"])
    found: Cells = {}
    for graph, method in itertools.product(given["datasets"], given["methods"]):
        dataset = entries.one(config, "datasets", graph)
        base, fixed = variants.read(method)
        defaults = entries.one(config, "methods", method, dataset)
        drawn = search.trials(
            defaults.configured[0],
            space,
            setting.options,
            defaults.options,
            number=given["trials"],
            seed=given["seed"],
        )
        blocks = [
            {
                **common,
                "settings": {name: {**changes, **trial.setting}},
                "datasets": {graph: {}},
                "methods": {base: {**fixed, **trial.parameters}},
            }
            for trial in drawn
        ]
        planned = _runs_of(config, blocks)
        if len(planned) > len(drawn):
            raise ConfigError(
                f"studies.{study}.search has several splits or partitions; one of each is allowed"
            )
        found[graph, method] = [dataclasses.replace(run, trial=True) for run in planned]
    return found


def _search_space(config: Config, study: str) -> spaces.Space:
    """What a search tries of its setting."""
    protocol = variants.base(config["studies"][study]["search"]["setting"])
    space: spaces.Space = PROTOCOLS.get(protocol, PROTOCOLS["global"])["search"]
    return space


@cache
def _finalists(config: Config, study: str) -> Cells:
    """The best trials on the first seed, in their order; all trials must be trained."""
    cells = _trials(config, study)
    shares = _validation(config, itertools.chain(*cells.values()))
    return {
        cell: [trials[place] for place in sorted(search.best([shares[run.key] for run in trials]))]
        for cell, trials in cells.items()
    }


@cache
def _chosen(config: Config, study: str) -> dict[tuple[str, str], tuple[Run, Run, search.Choice]]:
    """The chosen trial on the first seed, the runner-up, and the choice; finalists must be trained
    on all seeds.
    """
    seeds, cells = config["studies"][study]["search_seeds"], _finalists(config, study)
    shares = _validation(config, _on_seeds(itertools.chain(*cells.values()), seeds))
    found = {}
    for cell, finalists in cells.items():
        choice = search.choose(
            [[shares[run.key] for run in _on_seeds([trial], seeds)] for trial in finalists]
        )
        found[cell] = finalists[choice.trial], finalists[choice.runner_up], choice
    return found


def _validation(config: Config, trials: Iterable[Run]) -> dict[str, float]:
    """The share of validation nodes that each is right on, by key; where owners judge, by the
    better of their models.
    """
    rows = load(config, list(trials))
    return dict(zip(rows["key"], rows[["validation", "validation_after"]].max(axis=1), strict=True))


def _on_seeds(trials: Iterable[Run], seeds: Sequence[int]) -> list[Run]:
    return [dataclasses.replace(run, seed=seed) for run in trials for seed in seeds]


def all_runs(config: Config) -> list[Run]:
    """Every run of the main tables and of the studies without code of their own, each once."""
    names = [name for name, study in config["studies"].items() if not has_code(study["kind"])]
    return list(
        dict.fromkeys([*runs(config), *(run for name in names for run in study_runs(config, name))])
    )


def one_run(
    config: Config, method: str, clients: int | None = None, seed: int = 0, **names: str
) -> Run:
    """One run, which may be none of the plan's.

    Args:
        config: a configuration.
        method: name of its method, which may spell out changes, such as ``feddep,prototypes=3``.
        clients: number of clients M; None for the whole graph.
        seed: seed.
        names: of ``setting``, ``dataset``, ``split`` and ``partition`` likewise; by default the
            first setting and dataset of the configuration, and its split and partition.

    Raises:
        ConfigError: if there is no such entry, option or value.
    """
    first = {name: next(iter(config[f"{name}s"])) for name in ("setting", "dataset")}
    spelled = {**first, **names}
    dataset = entries.one(config, "datasets", spelled["dataset"])

    def division(section: entries.Section, name: str) -> Entry:
        if name in spelled:
            return entries.one(config, section, spelled[name], dataset)
        return entries.default(section, dataset)

    return Run(
        setting=entries.one(config, "settings", spelled["setting"]),
        dataset=dataset,
        split=division("splits", "split"),
        partition=division("partitions", "partition"),
        clients=clients,
        method=entries.one(config, "methods", method, dataset),
        seed=seed,
        data=keys.data_fingerprint(config, dataset),
    )


def has_code(kind: str) -> bool:
    """Whether studies of a kind are made by code of their own: a folder ``studies/GROUP/KIND`` that
    measures runs.
    """
    return any(STUDIES.glob(f"*/{kind}/measure.py"))


def graphs(config: Config) -> dict[str, str]:
    """The content key of every graph of the main tables, by the name of its dataset."""
    return {run.dataset.name: run.graph_key for run in runs(config)}


def partitions(config: Config) -> list[Run]:
    """A run for every partition that one of the main tables is trained on, each partition once."""
    found: dict[str, Run] = {}
    for run in runs(config):
        if run.clients is not None:
            found.setdefault(run.partition_key, run)
    return list(found.values())


def _runs_of(config: Config, blocks: Iterable[Mapping[str, Any]]) -> list[Run]:
    return list(dict.fromkeys(run for block in blocks for run in _runs(config, block)))


def _runs(config: Config, block: Mapping[str, Any]) -> Iterator[Run]:
    """The runs of a block; what it does not name is as in the main table, the first where it names
    no setting.
    """
    tables = main_tables(config)
    first: dict[str, Any] = {next(iter(tables)): {}}
    for setting in entries.variations(config, "settings", block.get("settings", first)):
        rows = block.get("methods", {name: {} for name in tables.get(setting.name, [])})
        methods = entries.variations(config, "methods", rows)
        for dataset in block_datasets(config, block, setting.name):
            if public := REGISTRY.get(dataset.name):
                check_metric(setting.options["metric"], public.classes, dataset.label)
            data = keys.data_fingerprint(config, dataset)
            for split, partition in _divisions(config, block, dataset):
                by_client = (
                    split.options["method"] == "within_clients"
                    or setting.options["evaluation"] == "owners"
                )
                for method in (entry.of_dataset(dataset.name) for entry in methods):
                    found, parameters, _ = method.configured
                    given = setting.options
                    found.check_setting(given["encoder"], given["full_batch"], parameters)
                    partitioned = found.partitioned or by_client
                    counts = block.get("clients", config["clients"]) if partitioned else [None]
                    for clients in counts:
                        _check_clients(dataset, partition, clients, found)
                        for seed in block.get("seeds", config["seeds"]):
                            yield Run(
                                setting, dataset, split, partition, clients, method, seed, data
                            )


def _divisions(
    config: Config, block: Mapping[str, Any], dataset: Entry
) -> Iterator[tuple[Entry, Entry]]:
    """The splits and partitions of a dataset in a block, by default the dataset's own."""
    axes: tuple[entries.Section, ...] = ("splits", "partitions")
    splits, partitions = (
        entries.variations(config, axis, block[axis], dataset)
        if axis in block
        else [entries.default(axis, dataset)]
        for axis in axes
    )
    return itertools.product(splits, partitions)


def _check_clients(dataset: Entry, partition: Entry, clients: int | None, method: Method) -> None:
    """Several graphs, one a client, have their own number of clients; neither they nor overlapping
    clients have edges between.
    """
    if clients is not None and partition.options["method"] == "overlap":
        parts_of(clients)
        method.check_overlap()
    known = clients_of(dataset.name)
    if not known or partition.options["method"] != "given":
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
