"""Reading a configuration: validated, completed with defaults, every mistake named in one
sentence.
"""

import difflib
import functools
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from feddep.config import variants
from feddep.config.models import Configuration, Dataset, Study
from feddep.config.sentences import checked, join, show
from feddep.datasets.public_graphs import REGISTRY, clients_of
from feddep.methods import plugins, registry
from feddep.training.config import TrainingConfig
from feddep.utils.errors import ConfigError

SOURCES = ("path", "synthetic")
"""Options of a dataset that say what graph it is, where it is none of the registry."""
DEFAULT = "default"
"""What stands for all other datasets where a method's parameter has a value for each."""
PARTITION = {
    "partition": "method",
    **{f"partition_{option}": option for option in ("delta", "engine", "beta")},
}
"""Options of a dataset that stand for those of the key ``partition``."""
SPLIT = {"split_train": "train", "split_val": "val"}
"""Options of a dataset that stand for those of the key ``split``."""
STUDIES = Path("studies")
"""The folder of the studies, in the working folder."""
_ENTRIES: dict[str, type[BaseModel]] = {"datasets": Dataset, "settings": TrainingConfig}


class _Loader(yaml.CSafeLoader):
    """YAML in which a number is the one that it looks like."""


def _number(loader: Any, node: Any) -> int | float:
    """A number; YAML 1.1 would read 010 as 8, and 12:30 as 750."""
    if re.fullmatch(r"[+-]?0[0-9_]+|[^.]*:.*", node.value):
        raise yaml.MarkedYAMLError(
            problem=f"{node.value} would be read as another number; quote a text, or write the "
            "number"
        )
    return (
        loader.construct_yaml_float(node)
        if node.tag.endswith("float")
        else loader.construct_yaml_int(node)
    )


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number)


class Config(dict[str, Any]):
    """A resolved configuration: every key is there, in alphabetical order; studies are a mapping by
    name.  Not to be changed.
    """

    __hash__ = object.__hash__  # type: ignore[assignment]


def load(*paths: str | Path) -> Config:
    """Read a configuration from one or more files, YAML or JSON, and validate it.

    Args:
        paths: later files over earlier ones, as Snakemake puts them together: mappings are merged,
            anything else is replaced.

    Raises:
        ConfigError: if a file is missing, cannot be read or is not YAML, or for any reason of
            :func:`validate`.
    """
    raw: dict[str, Any] = {}
    for path in paths:
        raw = merged(raw, read(path))
    return validate(raw)


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``changes`` over ``base``: mappings are merged, at every depth; anything else is replaced."""
    result = dict(base)
    for key, value in changes.items():
        before = result.get(key)
        result[key] = (
            merged(before, value)
            if isinstance(before, Mapping) and isinstance(value, Mapping)
            else value
        )
    return result


def read(path: str | Path) -> Mapping[str, Any]:
    """What a YAML or JSON file says, without checking what its keys mean.

    Raises:
        ConfigError: if it cannot be read or is no mapping.
    """
    try:
        raw = yaml.load(Path(path).read_text(encoding="utf-8"), _Loader)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(
            f"the configuration {path} cannot be read: {' '.join(str(error).split())}"
        ) from None
    if not isinstance(raw, Mapping):
        raise ConfigError(f"the configuration {path} is {show(raw)}; it must be a mapping")
    return raw


def typed(value: Any) -> Any:
    """A value of Snakemake's ``--config``, which leaves numbers, truth values and null as text
    where they are nested.
    """
    if isinstance(value, Mapping):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def validate(raw: Any) -> Config:
    """Check a configuration and return it with every default filled in; ``raw`` is left as it is.

    Raises:
        ConfigError: for a key that is unknown or missing, a value that is not allowed, or a
            dataset, method or study that does not exist; the sentence names the key path, what was
            found and what is allowed.
    """
    if not isinstance(raw, Mapping):
        raise ConfigError(f"the configuration is {show(raw)}; it must be a mapping")
    resolved = checked(Configuration, raw).model_dump(mode="json")
    _check_split(resolved["split"])
    plugins.use(resolved["plugins"])
    complete = {
        **resolved,
        "datasets": {
            name: _dataset(name, options, resolved)
            for name, options in resolved["datasets"].items()
        },
        "methods": {
            name: _method_parameters(name, options) for name, options in resolved["methods"].items()
        },
        "studies": {
            study.pop("name"): study
            for given in resolved["studies"]
            for study in map(_study, _of_folder(given))
        },
    }
    config = Config(json.loads(json.dumps(complete, sort_keys=True)))
    _check_datasets(config["datasets"])
    _check_outputs(config)
    _check_tables(config)
    _check_by_dataset(config)
    for name, study in config["studies"].items():
        _check_blocks(config, f"studies.{name}.runs", study["runs"])
    return config


def _of_folder(given: str | Mapping[str, Any]) -> Sequence[str | Mapping[str, Any]]:
    """The names of all studies in a folder of ``studies/``; any other entry by itself."""
    if isinstance(given, str) and (STUDIES / given).is_dir():
        return [file.stem for file in sorted((STUDIES / given).glob("*.yaml"))]
    return [given]


def _study(given: str | Mapping[str, Any]) -> dict[str, Any]:
    """A study that is written out, or the file of a name; blocks without the keys that they do not
    give.
    """
    if isinstance(given, str):
        known = {file.stem: file for file in sorted(STUDIES.rglob("*.yaml"))}
        if given not in known:
            nearest = ", ".join(difflib.get_close_matches(given, known, cutoff=0)) or "none"
            raise ConfigError(
                f"studies names {given}, which is no folder and no file of {STUDIES}/; of the "
                f"{len(known)} files there, the nearest are {nearest}"
            )
        study = checked(
            Study, {"name": given, **read(known[given])}, ("studies", given)
        ).model_dump(mode="json")
    else:
        study = dict(given)
    study["runs"] = [
        {key: value for key, value in block.items() if value is not None} for block in study["runs"]
    ]
    return study


@functools.cache
def entry(config: Config, section: str, spelled: str, dataset: str | None = None) -> dict[str, Any]:
    """The complete options of a dataset, setting or method under a spelled name
    (:mod:`feddep.config.variants`).

    A method needs no entry in the configuration: without one it has its defaults.

    Args:
        config: a resolved configuration.
        section: ``datasets``, ``settings`` or ``methods``.
        spelled: the name, with what differs from the entry.
        dataset: whose value is meant where a method's parameter has one for each dataset; without
            it they are all kept.

    Raises:
        ConfigError: if there is no such entry, option or value.
    """
    name, changes = variants.read(spelled)
    options = _changed(config, section, name, changes)
    return options if dataset is None else _for_dataset(f"{section}.{name}", options, dataset)


def _changed(config: Config, section: str, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The complete options of an entry with some of them changed."""
    options = config[section].get(name)
    if section == "methods":
        return _method_parameters(name, {**(options or {}), **changes})
    if options is None:
        raise ConfigError(
            f"{join(section, name)} is not in the configuration; there are "
            f"{', '.join(config[section])}"
        )
    for key in SOURCES if section == "datasets" else ():
        if key in changes:
            raise ConfigError(
                f"{section}.{name}.{key} makes another graph, not a variant; give it an entry "
                "in datasets"
            )
    changed = checked(_ENTRIES[section], {**options, **changes}, (section, name)).model_dump(
        mode="json"
    )
    return _dataset(name, changed, config) if section == "datasets" else changed


def main_tables(config: Config) -> dict[str, list[str]]:
    """The settings that have a main table, each with the methods that are its rows."""
    return {table["setting"]: list(table["methods"]) for table in config["tables"]}


def table_datasets(config: Config, setting: str) -> list[str]:
    """The datasets of the main table of a setting, or of the first table where the setting has
    none.
    """
    tables = {table["setting"]: table["datasets"] for table in config["tables"]}
    return list(tables.get(setting, next(iter(tables.values()))) or config["datasets"])


def variations(config: Config, section: str, given: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The spelled names of every variation that a study asks for, without what does not differ from
    the entry.

    Args:
        config: a resolved configuration.
        section: ``datasets``, ``settings`` or ``methods``.
        given: for each name the options to change; an option that is a list of values takes each of
            them.

    Raises:
        ConfigError: if there is no such entry, option or value.
    """
    names = []
    for spelled, options in given.items():
        name, fixed = variants.read(spelled)
        before = entry(config, section, spelled)
        for key, value in options.items():
            if value == [] or isinstance(value, Mapping):
                raise ConfigError(
                    f"{section}.{spelled}.{key} is {show(value)}; it must be a value or a list "
                    "of values"
                )
        for changes in variants.combinations(options):
            after = _changed(config, section, name, {**fixed, **changes})
            names.append(
                variants.format_name(
                    spelled, {key: after[key] for key in after if after[key] != before.get(key)}
                )
            )
    return list(dict.fromkeys(names))


def _dataset(name: str, options: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset's options with those of partition and split that they leave open, and without a
    source that is null.
    """
    partition, split = config["partition"], config["split"]
    kept = {key: value for key, value in options.items() if key not in SOURCES or value is not None}
    kept |= {key: partition[option] for key, option in PARTITION.items() if options[key] is None}
    kept |= {key: split[option] for key, option in SPLIT.items() if options[key] is None}
    if kept["split_train"] + kept["split_val"] > 1 - 1e-9:
        shares = f"{kept['split_train']:g} and {kept['split_val']:g}"
        raise ConfigError(
            f"datasets.{name}.split_train and split_val are {shares}; their sum must be below 1"
        )
    if clients_of(name) and options["partition"] is None:
        kept["partition"] = "given"
    for key, value, known in (("split", "masks", False), ("partition", "given", clients_of(name))):
        if kept[key] == value and "path" not in kept and not known:
            raise ConfigError(
                f"datasets.{name}.{key} is {value}, which is for a graph of your own (key path)"
            )
    return kept


def _check_split(split: Mapping[str, float]) -> None:
    total = math.fsum(split.values())
    if not math.isclose(total, 1.0, abs_tol=1e-9):
        raise ConfigError(
            f"split is {show(split)}, which sums to {total:.12g}; train, val and test must sum to 1"
        )


def _check_datasets(datasets: Mapping[str, Mapping[str, Any]]) -> None:
    for name, options in datasets.items():
        known, given = name in REGISTRY, [key for key in SOURCES if key in options]
        if name == DEFAULT:
            raise ConfigError(
                f"datasets.{name} is no name of a dataset: it stands for all of them in "
                "parameters of methods"
            )
        if given and known:
            raise ConfigError(
                f"datasets.{name}.{given[0]} is given, but {name} is a real dataset; choose "
                "another name"
            )
        if len(given) > 1:
            raise ConfigError(
                f"datasets.{name} has {' and '.join(given)}; one of them says what graph it is"
            )
        if not given and not known:
            where = (
                f"datasets.{name} is not a known dataset and has neither {' nor '.join(SOURCES)}"
            )
            raise ConfigError(f"{where}; known: {', '.join(REGISTRY)}")


def _check_outputs(config: Config) -> None:
    """Make sure that no output takes the place of another, or of an input."""
    output, records = (
        Path(os.path.abspath(path)) for path in (config["output"], config["records"]["directory"])
    )
    for name in config["studies"]:
        if name == "main" or output / name == records:
            raise ConfigError(
                f"studies.{name} would be written to {output / name}, which has other results; "
                "it needs another name"
            )
    for name, options in config["datasets"].items():
        if "path" in options and Path(os.path.abspath(options["path"])) in (
            output,
            records,
            output / "main",
        ):
            raise ConfigError(
                f"datasets.{name}.path is {options['path']}, which results are written to (key "
                "output or records)"
            )


def _check_tables(config: Config) -> None:
    for number, table in enumerate(config["tables"]):
        named = {
            "settings": [table["setting"]],
            "datasets": table["datasets"] or [],
            "methods": table["methods"],
        }
        for section, name in (
            (section, name) for section, names in named.items() for name in names
        ):
            try:
                entry(config, section, name)
            except ConfigError as error:
                raise ConfigError(f"tables.{number}.{section}: {error}") from None
        if table["setting"] not in config["settings"]:
            raise ConfigError(
                f"tables.{number}.setting is {table['setting']}, a variant; a table's setting "
                "is an entry of settings"
            )
    settings = [table["setting"] for table in config["tables"]]
    if len(set(settings)) < len(settings):
        raise ConfigError(f"tables is {show(settings)} by setting; a setting has one table")


def _check_by_dataset(config: Config) -> None:
    """Make sure that parameters with a value for each dataset name datasets that there are."""
    known = list(dict.fromkeys([*config["datasets"], *REGISTRY, DEFAULT]))
    for name, parameters in config["methods"].items():
        for key, value in parameters.items():
            for dataset in value if isinstance(value, Mapping) else ():
                if dataset not in known:
                    where = join(join("methods", name), key)
                    raise ConfigError(
                        f"{join(where, dataset)} is of no dataset; there are {', '.join(known)}"
                    )


def _check_blocks(config: Config, path: str, blocks: Iterable[Mapping[str, Any]]) -> None:
    for number, block in enumerate(blocks):
        for section in ("datasets", "settings", "methods"):
            try:
                variations(config, section, block.get(section, {}))
            except ConfigError as error:
                raise ConfigError(f"{path}.{number}.{section}: {error}") from None
        for setting in () if "methods" in block else block.get("settings", {}):
            if variants.base(setting) not in main_tables(config):
                raise ConfigError(
                    f"{path}.{number} names no methods, and its setting {setting} has no main "
                    "table with any"
                )


def _for_dataset(path: str, parameters: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    name = variants.base(dataset)
    chosen = {}
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            if name not in value and DEFAULT not in value:
                raise ConfigError(
                    f"{path}.{key} has a value for {', '.join(value)}, but none for {name}, and "
                    f"no {DEFAULT}"
                )
            value = value.get(name, value.get(DEFAULT))
        chosen[key] = value
    return chosen


def _method_parameters(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
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
