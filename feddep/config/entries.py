"""Entries of a configuration with all of their options: the datasets, splits, partitions, settings
and methods that runs are made of.

A block of runs names entries and what to change of them.  The label that tables and progress bars
show, such as ``feddep,prototypes=3``, spells out the changes; no run is read from it again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from feddep.config import variants
from feddep.config.models import Dataset, PartitionOptions, SplitOptions
from feddep.config.sentences import checked, join, show
from feddep.datasets.public_graphs import REGISTRY, clients_of
from feddep.graph.partitioners import engine_for
from feddep.methods import registry
from feddep.methods.method import Method, Step
from feddep.training.config import TrainingConfig
from feddep.utils.errors import ConfigError, nearest
from feddep.utils.parameters import Parameters

if TYPE_CHECKING:
    from feddep.config.loading import Config

Section = Literal["settings", "datasets", "splits", "partitions", "methods"]
SECTIONS: tuple[Section, ...] = ("settings", "datasets", "splits", "partitions", "methods")
"""The sections that a block of runs may name."""
SOURCES = ("path", "synthetic")
"""Options of a dataset that say what graph it is, where it is none of the registry."""
DEFAULT = "default"
"""The key for all other datasets where a method's parameter has a value for each."""
_OF_DATASET: dict[Section, tuple[str, type[BaseModel]]] = {
    "splits": ("split", SplitOptions),
    "partitions": ("partition", PartitionOptions),
}
"""Sections whose entries are methods, and the option of a dataset that has their defaults."""


@dataclass(frozen=True)
class Entry:
    """A dataset, split, partition, setting or method of a run.

    Attributes:
        label: its name, with what differs from the entry of the configuration.
        name: name of the dataset, setting or method; of a split or partition its method.
        changes: what differs from the entry of the configuration.
        options: all of its options, as JSON has them: an entry can be sent to another process
            before that has loaded the plugins.
    """

    label: str
    name: str
    changes: Mapping[str, Any] = field(hash=False, repr=False)
    options: Mapping[str, Any] = field(hash=False, repr=False)

    def __str__(self) -> str:
        return self.label

    def __getstate__(self) -> dict[str, Any]:
        """Its fields alone: what is cached may be of a plugin."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def of_dataset(self, dataset: str) -> "Entry":
        """A method with the values that its parameters have for a dataset.

        Raises:
            ConfigError: if one has none.
        """
        by_dataset = [key for key, value in self.options.items() if isinstance(value, Mapping)]
        return _of_dataset(self, dataset) if by_dataset else self

    @cached_property
    def configured(self) -> tuple[Method, Parameters, tuple[Step, ...]]:
        """The method that it names, its parameters and its steps."""
        found, parameters = registry.configured({"name": self.name, **self.options})
        return found, parameters, tuple(found.steps(parameters))


@cache
def _of_dataset(entry: Entry, dataset: str) -> Entry:
    chosen = {}
    for key, value in entry.options.items():
        if isinstance(value, Mapping):
            if dataset not in value and DEFAULT not in value:
                raise ConfigError(
                    f"methods.{entry.name}.{key} has a value for {', '.join(value)}, but none for "
                    f"{dataset}, and no {DEFAULT}"
                )
            value = value.get(dataset, value.get(DEFAULT))
        chosen[key] = value
    return Entry(entry.label, entry.name, entry.changes, chosen)


def one(config: "Config", section: Section, spelled: str, dataset: Entry | None = None) -> Entry:
    """The entry of a name, which may spell out changes, such as ``feddep,prototypes=3``.

    Args:
        config: a resolved configuration.
        section: what it names.
        spelled: the name.
        dataset: whose split or partition it is, or whose values a method has.

    Raises:
        ConfigError: if there is no such entry, option or value.
    """
    name, changes = variants.read(spelled)
    (entry,) = variations(config, section, {name: changes}, dataset)
    return entry


def variations(
    config: "Config",
    section: Section,
    given: Mapping[str, Mapping[str, Any]],
    dataset: Entry | None = None,
) -> list[Entry]:
    """Every variation of entries that a block of runs asks for.

    Args:
        config: a resolved configuration.
        section: what the block gives.
        given: for each name the options to change; an option that is a list of values takes each of
            them.
        dataset: the dataset whose split or partition is changed, or whose values methods have; of
            methods it may be left out to check them for all datasets.

    Raises:
        ConfigError: if there is no such entry, option or value.
    """
    found: dict[str, Entry] = {}
    for spelled, options in given.items():
        name, fixed = variants.read(spelled)
        before = _options(config, section, name, json.dumps(fixed), dataset)
        for key, value in options.items():
            if value == [] or isinstance(value, Mapping):
                raise ConfigError(
                    f"{section}.{spelled}.{key} is {show(value)}; it must be a value or a list "
                    "of values"
                )
        for changes in variants.combinations(options):
            after = _options(config, section, name, json.dumps({**fixed, **changes}), dataset)
            differing = {key: after[key] for key in after if after[key] != before.get(key)}
            label = variants.format_name(spelled, differing)
            for other in found.values():
                if (other.name, other.options) == (name, after) and other.label != label:
                    raise ConfigError(
                        f"{join(section, label)} is the same as {other.label}; each may be named "
                        "once"
                    )
            found.setdefault(label, Entry(label, name, {**fixed, **differing}, after))
    if section == "methods" and dataset is not None:
        return [entry.of_dataset(dataset.name) for entry in found.values()]
    return list(found.values())


def default(section: Section, dataset: Entry) -> Entry:
    """The split or partition of a dataset where a block of runs gives none."""
    options = dataset.options[_OF_DATASET[section][0]]
    return Entry(options["method"], options["method"], {}, options)


@cache
def _options(
    config: "Config", section: Section, name: str, changes: str, dataset: Entry | None
) -> dict[str, Any]:
    """The complete options of an entry with some of them changed, as JSON has them."""
    changed: dict[str, Any] = json.loads(changes)
    if section == "methods":
        return method_parameters(name, {**(config["methods"].get(name) or {}), **changed})
    if section in _OF_DATASET:
        assert dataset is not None
        option, model = _OF_DATASET[section]
        given = {**dataset.options[option], "method": name, **changed}
        return _checked_division(
            dataset.name, option, checked(model, given, (section, name)), dataset.options
        )
    known = config[section].get(name)
    if known is None:
        raise ConfigError(
            f"{join(section, name)} is not in the configuration; {nearest(name, config[section])}"
        )
    if section == "settings":
        return checked(TrainingConfig, {**known, **changed}, (section, name)).model_dump(
            mode="json"
        )
    return complete_dataset(config, name, {**known, **changed})


def complete_dataset(
    config: Mapping[str, Any], name: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """A dataset's options, without a source that is null, and its split and partition in full."""
    options = checked(Dataset, given, ("datasets", name)).model_dump(mode="json")
    kept = {key: value for key, value in options.items() if key not in SOURCES or value is not None}
    for option, model in _OF_DATASET.values():
        default = dict(config[option])
        if option == "partition" and clients_of(name):
            default["method"] = "given"
        path = ("datasets", name, option)
        chosen = checked(model, {**default, **(options[option] or {})}, path)
        kept[option] = _checked_division(name, option, chosen, kept)
    return kept


def _checked_division(
    name: str, option: str, chosen: BaseModel, dataset: Mapping[str, Any]
) -> dict[str, Any]:
    """The options of a dataset's split or partition, as JSON has them.

    Raises:
        ConfigError: if no test nodes are left, or the data do not say what they are to say.
    """
    options = chosen.model_dump(mode="json")
    if options.get("engine", "") is None:
        options["engine"] = engine_for(_nodes(name, dataset))
    if option == "split" and options["train"] + options["val"] > 1 - 1e-9:
        raise ConfigError(
            f"datasets.{name}.split has train {options['train']:g} and val {options['val']:g}; "
            "their sum must be below 1"
        )
    said_by_data = {"split": "masks", "partition": "given"}[option]
    known = option == "partition" and clients_of(name)
    if options["method"] == said_by_data and "path" not in dataset and not known:
        raise ConfigError(
            f"datasets.{name}.{option} is {said_by_data}, which is for a graph of your own "
            "(key path)"
        )
    return options


def _nodes(name: str, dataset: Mapping[str, Any]) -> int:
    """Number of nodes of a graph that is generated or public; 0 for one of one's own, which is read
    later.
    """
    if "synthetic" in dataset:
        return int(dataset["synthetic"]["nodes"])
    return REGISTRY[name].nodes if name in REGISTRY else 0


def method_parameters(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a method, ``given`` over the defaults; a parameter may have a value by
    dataset.
    """
    model, path = registry.find(name).parameters, ("methods", name)
    by_dataset = {key: value for key, value in given.items() if isinstance(value, Mapping)}
    alike = {key: value for key, value in given.items() if key not in by_dataset}
    complete = checked(model, alike, path).model_dump(mode="json")
    for key, values in by_dataset.items():
        if not values:
            raise ConfigError(
                f"{'.'.join((*path, key))} is {{}}; it must be a value, or have one for each "
                "dataset"
            )
        each = {
            dataset: checked(model, {**alike, key: value}, path, (dataset,))
            for dataset, value in values.items()
        }
        complete[key] = {dataset: getattr(parameters, key) for dataset, parameters in each.items()}
    return complete
