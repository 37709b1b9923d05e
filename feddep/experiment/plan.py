"""The plan: the runs that a configuration asks for."""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

import pandas as pd

from feddep.config import entries, variants
from feddep.config.entries import Entry
from feddep.config.loading import STUDIES, Config, block_datasets, main_tables
from feddep.config.models import Dataset, PartitionOptions, SplitOptions
from feddep.datasets.public_graphs import REGISTRY, clients_of
from feddep.experiment import keys, search
from feddep.experiment.runs import are_trained, as_owners_choose, load
from feddep.graph.noise import LABEL_NOISE
from feddep.graph.partitioners import parts_of
from feddep.methods.method import CROSS_CLIENT_EDGES, ORACLE, Method
from feddep.training.config import PROTOCOLS, TrainingConfig, check_metric, check_new_clients
from feddep.training.evaluation import is_unfinished
from feddep.utils import spaces
from feddep.utils.errors import ConfigError
from feddep.utils.parameters import Parameters

HERE, AGAIN, ELSEWHERE = CONFIGURATIONS = "tuned here", "tuned again", "out of the box"
"""How what a search chose was found: on this graph; of the reference once more, by other trials, so
that the difference is the noise of tuning; on all other graphs.
"""
MOST_ROUNDS = 300
"""Most rounds that a search adds to (:func:`_longer`)."""


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
        trial: whether a divergence is a result, as of what a search tries.
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
        _, parameters, _ = self.method.configured
        return keys.specification(
            dataset={"name": self.dataset.name, **_in_key(Dataset, self.dataset)},
            split=_split(self.split),
            partition=None
            if self.clients is None
            else {"clients": self.clients, **_in_key(PartitionOptions, self.partition)},
            setting=_in_key(TrainingConfig, self.setting),
            method={"name": self.method.name, **parameters.in_key()},
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
    known = [_each_once(_trials(config, study))]
    if are_trained(config, known[0]):
        best = _each_once(_finalists(config, study))
        known.append(_on_seeds(best, entry["search_seeds"][1:]))
        if are_trained(config, known[1]):
            known.append(_each_once(final_runs(config, study)))
    return known


def _each_once(cells: Mapping[Any, Iterable[Run]]) -> list[Run]:
    return list(dict.fromkeys(itertools.chain(*cells.values())))


def final_runs(config: Config, study: str) -> dict[str, list[Run]]:
    """The runs of a study that its tables compare, by :data:`CONFIGURATIONS`: of what its search
    chose, whose finalists must be trained, or all but those of ``search_seeds``.
    """
    entry = config["studies"][study]
    if not entry["search"]:
        searched = entry["search_seeds"] or ()
        return {HERE: [run for run in study_runs(config, study) if run.seed not in searched]}
    seeds, found = entry["search"]["seeds"] or config["seeds"], dict[str, list[Run]]()
    for cell, of in _chosen(config, study).items():
        # What was chosen on other graphs may diverge on this one.
        run = dataclasses.replace(of.run, trial=cell.configuration == ELSEWHERE)
        if cell.dataset:
            found.setdefault(cell.configuration, []).extend(_on_seeds([run], seeds))
    return found


def tuned_studies(config: Config, study: str) -> list[str]:
    """The study of tuned methods of this name, or those that a pooled one names.

    Raises:
        ConfigError: if there is no such study.
    """
    kinds = {name: each["kind"] for name, each in config["studies"].items()}
    known = [name for name, kind in kinds.items() if kind in ("tuned", "searched", "pooled")]
    if study not in known:
        raise ConfigError(
            f"studies.{study} is no study of tuned methods; there are {', '.join(known)}"
        )
    return list(config["studies"][study]["studies"]) if kinds[study] == "pooled" else [study]


def compared_runs(config: Config, study: str) -> dict[str, list[Run]]:
    """Of a study of tuned methods the runs that its table compares on each dataset, by name; of a
    pooled one those of the first study that has the dataset.

    Raises:
        ConfigError: if there is no such study.
    """
    found: dict[str, list[Run]] = {}
    for name in tuned_studies(config, study):
        own: dict[str, list[Run]] = {}
        for run in final_runs(config, name)[HERE]:
            own.setdefault(run.dataset.name, []).append(run)
        found = {**own, **found}
    return found


def choices(config: Config, study: str) -> pd.DataFrame:
    """What a search chose: a row a dataset, method and configuration.

    Returns:
        dataset; method; configuration, of :data:`CONFIGURATIONS`; trials, their number; of their
        runs that all trials have stalled and diverged, which counts as stalled; the chosen_setting,
        with the rounds of the final runs, and chosen_method as they are spelled; validation, the
        mean over the runs that decide, and median_validation, that of all trials on the runs that
        all have; the setting and method of the runner_up; lead, how much better the mean is than
        the runner-up's; ties, how many others have the same mean; edge, the names whose chosen
        values are in the first or last 5 % of their range.
    """
    rows = []
    for cell, of in _chosen(config, study).items():
        runs = pd.DataFrame([*itertools.chain(*of.tried)])
        means = runs["validation"].to_numpy().reshape(len(of.tried), -1).mean(axis=1)
        edge = spaces.at_edge(_search_space(of.run.setting), of.run.setting.options)
        found, *_ = of.run.method.configured
        edge += spaces.at_edge(found.search, of.run.method.options)
        rows.append(
            {
                **cell._asdict(),
                "trials": len(of.tried),
                "stalled": int(runs["stalled"].sum()),
                "diverged": int(runs["validation"].isna().sum()),
                "chosen_setting": of.run.setting.label,
                "chosen_method": of.run.method.label,
                "validation": of.choice.validation,
                "median_validation": pd.Series(means).median(),
                "runner_up_setting": of.runner_up.setting.label,
                "runner_up_method": of.runner_up.method.label,
                "lead": of.choice.lead,
                "ties": of.choice.ties,
                "edge": " ".join(edge),
            }
        )
    return pd.DataFrame(rows)


@cache
def _block_runs(config: Config, study: str) -> list[Run]:
    return _runs_of(config, config["studies"][study]["runs"])


class Cell(NamedTuple):
    """A method on a dataset, and how it is searched, one of :data:`CONFIGURATIONS`."""

    dataset: str
    method: str
    configuration: str


Cells = dict[Cell, list[Run]]
"""Trials; those of a method have the same places on all datasets."""


@dataclass(frozen=True)
class Chosen:
    """A trial that was chosen.

    Attributes:
        run: on the first seed, with the rounds of the final runs.
        runner_up: that of the second best.
        choice: their places and validation.
        tried: of each trial what its runs on the first seed measured (:func:`_measured`), on this
            dataset or on the others.
    """

    run: Run
    runner_up: Run
    choice: search.Choice
    tried: Sequence[Sequence[Mapping[Any, Any]]]


@cache
def _trials(config: Config, study: str) -> Cells:
    """The trials of a search on its first seed."""
    entry = config["studies"][study]
    given = entry["search"]
    reference = entry["options"].get("reference", given["methods"][0])
    axes = {axis: given[axis] for axis in ("splits", "partitions") if axis in given}
    searched = [(method, HERE) for method in given["methods"]]
    if reference in given["methods"]:
        searched.append((reference, AGAIN))
    found: Cells = {}
    for graph, (method, how) in itertools.product(given["datasets"], searched):
        dataset = entries.one(config, "datasets", graph)
        base, fixed = variants.read(method)
        defaults = entries.one(config, "methods", method, dataset)
        graphs, trained = clients_of(dataset.name), defaults.configured[0]
        if graphs and {CROSS_CLIENT_EDGES, ORACLE} & {*trained.assumes}:
            continue  # there are no such edges
        spelled = given["setting"].get(graph, given["setting"].get(entries.DEFAULT))
        if spelled is None:
            raise ConfigError(f"search.setting has none for {graph}, and no {entries.DEFAULT}")
        setting = entries.one(config, "settings", spelled)
        name, changes = variants.read(spelled)
        drawn = search.trials(
            trained,
            _search_space(setting),
            setting.options,
            defaults.options,
            number=given["trials"],
            seed=given["seed"] + (how == AGAIN),
        )
        blocks = [
            {
                **axes,
                "clients": [len(graphs) or given["clients"]],
                "seeds": entry["search_seeds"][:1],
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
        cell = Cell(graph, method, how)
        found[cell] = [dataclasses.replace(run, trial=True) for run in planned]
    if not found:
        raise ConfigError(
            f"studies.{study}.search has no trials: {', '.join(given['methods'])} use edges "
            "between clients, and there are none where each has a graph of its own"
        )
    return found


def _search_space(setting: Entry) -> spaces.Space:
    """What a search tries of a setting."""
    space: spaces.Space = PROTOCOLS.get(setting.name, PROTOCOLS["global"])["search"]
    return space


@cache
def _finalists(config: Config, study: str) -> Cells:
    """The best trials on the first seed, in their order; all trials must be trained."""
    cells = _trials(config, study)
    measured = _measured(config, itertools.chain(*cells.values()))
    found: Cells = {}
    for cell, trials in cells.items():
        best = search.best([measured[run.key]["validation"] for run in trials])
        found[cell] = [trials[place] for place in sorted(best)]
    return found


@cache
def _chosen(config: Config, study: str) -> dict[Cell, Chosen]:
    """What each search chose; finalists must be trained on all seeds.

    Where there are several datasets, each has besides that trial of a method whose mean validation
    on the others is the best, and so has any other graph, whose name is empty; with the setting of
    a dataset that has none of its own.
    """
    seeds, cells = config["studies"][study]["search_seeds"], _trials(config, study)
    every = {
        cell: [_on_seeds([trial], seeds) for trial in finalists]
        for cell, finalists in _finalists(config, study).items()
    }
    finals = itertools.chain(*every.values())
    measured = _measured(config, itertools.chain(*cells.values(), *finals))
    own = config["studies"][study]["search"]["setting"]
    found = {
        cell: _choice(config, measured, by, [of[0] for of in by], [[run] for run in cells[cell]])
        for cell, by in every.items()
    }
    for method in dict.fromkeys(cell.method for cell in cells):
        graphs = {
            cell.dataset: trials
            for cell, trials in cells.items()
            if (cell.method, cell.configuration) == (method, HERE)
        }
        for dataset in [*graphs, ""] if len(graphs) > 1 else ():
            others = [trials for name, trials in graphs.items() if name != dataset]
            by = list(zip(*others, strict=True))
            here = graphs.get(dataset, graphs[min(graphs, key=lambda name: name in own)])
            found[Cell(dataset, method, ELSEWHERE)] = _choice(config, measured, by, here, by)
    return found


def _choice(
    config: Config,
    measured: Mapping[str, Mapping[Any, Any]],
    by: Sequence[Sequence[Run]],
    here: Sequence[Run],
    tried: Sequence[Sequence[Run]],
) -> Chosen:
    """The best of trials by the runs ``by`` of each, as it is ``here``; with more rounds if most of
    its runs are unfinished.
    """
    found, first = (
        [[measured[run.key] for run in runs] for runs in of_trials] for of_trials in (by, tried)
    )
    choice = search.choose([[each["validation"] for each in of] for of in found])
    run, unfinished = here[choice.trial], [each["unfinished"] for each in found[choice.trial]]
    if 2 * sum(unfinished) > len(unfinished):
        run = dataclasses.replace(run, setting=_longer(config, run.setting))
    return Chosen(run, here[choice.runner_up], choice, first)


def _longer(config: Config, setting: Entry) -> Entry:
    """A setting with three times as many rounds, at most :data:`MOST_ROUNDS`."""
    name, changes = variants.read(setting.label)
    rounds = setting.options["rounds"]
    more = {**changes, "rounds": max(rounds, min(3 * rounds, MOST_ROUNDS))}
    return entries.one(config, "settings", variants.format_name(name, more))


def _measured(config: Config, trials: Iterable[Run]) -> dict[Any, dict[Any, Any]]:
    """By key the share of validation nodes that each is right on, where owners judge by the better
    of their models; and whether it stalled or is unfinished.
    """
    rows = as_owners_choose(load(config, list(dict.fromkeys(trials)))).set_index("key")
    late = map(is_unfinished, map(json.loads, rows["best_round"]), rows["rounds"])
    return rows[["validation", "stalled"]].assign(unfinished=list(late)).to_dict("index")


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
            noise = dataset.options["noise"]
            for split, partition in _divisions(config, block, dataset):
                tested_apart = split.options["unseen"] or noise not in LABEL_NOISE
                by_client = (
                    split.options["method"] == "within_clients"
                    or setting.options["evaluation"] == "owners"
                    or noise is not None
                )
                for method in (entry.of_dataset(dataset.name) for entry in methods):
                    found, parameters, _ = method.configured
                    found.check_setting(setting.options, parameters)
                    if tested_apart:
                        found.check_tested_apart()
                    partitioned = found.partitioned or by_client
                    counts = block.get("clients", config["clients"]) if partitioned else [None]
                    for clients in counts:
                        _check_clients(dataset, partition, clients, found)
                        check_new_clients(setting.options["new_clients"], clients)
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
        if dataset.options["noise"] is not None:
            raise ConfigError(
                f"partition is overlap, but {dataset} has noise; each node of it "
                "must be at one client"
            )
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
