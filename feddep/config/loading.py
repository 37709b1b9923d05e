"""Reading a configuration: validated, completed with defaults, every mistake named in one
sentence.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from feddep.config import entries, variants
from feddep.config.entries import DEFAULT, SOURCES, Entry, complete_dataset, method_parameters
from feddep.config.models import Configuration, Plugins, Study
from feddep.config.sentences import checked, join, show
from feddep.datasets.public_graphs import REGISTRY
from feddep.methods import plugins
from feddep.utils.errors import ConfigError, nearest

CONFIGURATION = Path("config", "default.yaml")
"""The configuration of the benchmark, in the working folder."""
STUDIES = Path("studies")
"""The folder of the studies, in the working folder."""
SEARCH_SEEDS = [20, 21, 22]
"""Seeds of a search where it gives none."""
_MOST = 10**7
"""Most characters of a configuration."""


class Config(dict[str, Any]):
    """A resolved configuration: every key is there, in alphabetical order; studies are a mapping by
    name.  Not to be changed.
    """

    __hash__ = object.__hash__  # type: ignore[assignment]


class _Loader(yaml.CSafeLoader):
    """YAML in which a mapping has each key once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        counts = Counter((key.tag, str(key.value)) for key, _ in node.value)
        if twice := [name for (_, name), count in counts.items() if count > 1]:
            raise yaml.MarkedYAMLError(
                problem=f"the key {twice[0]} occurs twice", problem_mark=node.start_mark
            )
        return super().construct_mapping(node, deep)


def load(*paths: str | Path) -> Config:
    """Read a configuration from files, YAML or JSON, and validate it.

    Args:
        paths: later files over earlier ones, as Snakemake puts them together: mappings are merged,
            anything else is replaced; by default :data:`CONFIGURATION`.

    Raises:
        ConfigError: if a file is missing, cannot be read or is not YAML, or for any reason of
            :func:`validate`.
    """
    raw: dict[str, Any] = {}
    for path in paths or (CONFIGURATION,):
        raw = merged(raw, read(path))
    return validate(raw)


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``changes`` over ``base``: mappings are merged, at every depth; anything else is replaced.
    As Snakemake has it, an empty mapping changes nothing.
    """
    result = dict(base)
    for key, value in changes.items():
        if not isinstance(value, Mapping):
            result[key] = value
        elif value or key not in result:
            before = result.get(key)
            result[key] = merged(before if isinstance(before, Mapping) else {}, value)
    return result


def read(path: str | Path) -> Mapping[str, Any]:
    """The content of a YAML or JSON file, without checking what its keys mean.

    Raises:
        ConfigError: if it cannot be read, is no mapping, or has a key twice.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(_MOST + 1)
        if len(text) > _MOST:
            raise ValueError(f"it has more than {_MOST:,} characters")
        raw = yaml.load(text, _Loader)
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
    named = {key: raw[key] for key in Plugins.model_fields if key in raw}
    plugins.use(checked(Plugins, named).plugins)
    resolved = checked(Configuration, raw).model_dump(mode="json")
    files = {file.stem: file for file in sorted(STUDIES.rglob("*.yaml"))}
    studies = [_study(each, files) for given in resolved["studies"] for each in _of_folder(given)]
    _check_studies([study["name"] for study in studies], resolved)
    complete = {
        **resolved,
        "datasets": {
            name: complete_dataset(resolved, name, options)
            for name, options in resolved["datasets"].items()
        },
        "methods": {
            name: method_parameters(name, options) for name, options in resolved["methods"].items()
        },
        "studies": {study.pop("name"): study for study in studies},
    }
    config = Config(json.loads(json.dumps(complete, sort_keys=True)))
    _check_datasets(config["datasets"])
    _check_tables(config)
    _check_by_dataset(config)
    for name, study in config["studies"].items():
        for other in study["studies"]:
            if other not in config["studies"]:
                raise ConfigError(
                    f"studies.{name}.studies names {other}, which is no study of the "
                    f"configuration; {nearest(other, config['studies'])}"
                )
        _check_blocks(config, f"studies.{name}.runs", study["runs"])
        if study["search"]:
            _check_search(f"studies.{name}", study, config["seeds"])
    return config


def _of_folder(given: str | Mapping[str, Any]) -> Sequence[str | Mapping[str, Any]]:
    """The names of all studies in a folder of ``studies/``; any other entry by itself."""
    if isinstance(given, str) and (STUDIES / given).is_dir():
        return [file.stem for file in sorted((STUDIES / given).glob("*.yaml"))]
    return [given]


def _study(given: str | Mapping[str, Any], known: Mapping[str, Path]) -> dict[str, Any]:
    """A study that is written out, or the file of a name; blocks without the keys that they do not
    give.
    """
    if isinstance(given, str):
        if given not in known:
            raise ConfigError(
                f"studies names {given}, which is no folder and no file of {STUDIES}/; "
                f"{nearest(given, known)}"
            )
        study = checked(
            Study, {"name": given, **read(known[given])}, ("studies", given)
        ).model_dump(mode="json")
    else:
        study = dict(given)
    axes = {axis: study.pop(axis, None) for axis in ("splits", "partitions")}
    study["runs"] = [_given({**axes, **_given(block)}) for block in study["runs"]]
    if study["search"]:
        study["search"] |= _given(axes)
        if isinstance(study["search"]["setting"], str):
            study["search"]["setting"] = {DEFAULT: study["search"]["setting"]}
        study["search_seeds"] = study["search_seeds"] or SEARCH_SEEDS
    return study


def _check_search(path: str, study: Mapping[str, Any], seeds: Sequence[int]) -> None:
    """Make sure that a search is all of its study, and chooses by none of its final seeds."""
    if study["runs"]:
        raise ConfigError(f"{path} has search and runs; one of them is allowed")
    if common := set(study["search_seeds"]) & set(study["search"]["seeds"] or seeds):
        raise ConfigError(
            f"{path} has {', '.join(map(str, sorted(common)))} in search_seeds and in "
            "search.seeds; a seed may be in one of them"
        )
    allowed = [*study["search"]["datasets"], DEFAULT]
    for name in study["search"]["setting"]:
        if name not in allowed:
            raise ConfigError(f"{path}.search.setting has {name}; {nearest(name, allowed)}")


def _given(block: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if value is not None}


def _check_studies(names: Sequence[str], config: Mapping[str, Any]) -> None:
    """Each study has a name, and so a folder of results, of its own."""
    output, records = config["output"], config["records"]["directory"]
    for name in names:
        folder = os.path.join(output, name)
        if name == "main" or os.path.abspath(records) == os.path.abspath(folder):
            raise ConfigError(
                f"studies.{name} would be written to {folder}, which has other results; it needs "
                "another name"
            )
        if names.count(name) > 1:
            raise ConfigError(f"studies.{name} is there {names.count(name)} times; once is allowed")


def main_tables(config: Config) -> dict[str, list[str]]:
    """The settings that have a main table, each with the methods that are its rows."""
    return {table["setting"]: list(table["methods"]) for table in config["tables"]}


def table_datasets(config: Config, setting: str) -> list[str]:
    """The datasets of the main table of a setting, or of the first table where the setting has
    none.
    """
    tables = {table["setting"]: table["datasets"] for table in config["tables"]}
    return list(tables.get(setting, next(iter(tables.values()))) or config["datasets"])


def block_datasets(config: Config, block: Mapping[str, Any], setting: str = "") -> list[Entry]:
    """The datasets of a block of runs, by default those of the setting's main table."""
    given = block.get("datasets") or {name: {} for name in table_datasets(config, setting)}
    return entries.variations(config, "datasets", given)


def _check_datasets(datasets: Mapping[str, Mapping[str, Any]]) -> None:
    """Each dataset is public, or has one key that says what graph it is."""
    for name, options in datasets.items():
        public, given = name in REGISTRY, [key for key in SOURCES if key in options]
        if public + len(given) != 1:
            raise ConfigError(
                f"datasets.{name} is {'a' if public else 'no'} public dataset and has "
                f"{' and '.join(given) or 'no source'}; allowed are a public one, "
                f"{nearest(name, REGISTRY)}, and any other name with {' or '.join(SOURCES)}"
            )


def _check_tables(config: Config) -> None:
    """Settings, datasets and methods of the main tables are there, and a setting has one table."""
    blocks: list[dict[str, Any]] = [
        {
            "settings": {table["setting"]: {}},
            "datasets": {name: {} for name in table["datasets"] or []},
            "methods": {name: {} for name in table["methods"]},
        }
        for table in config["tables"]
    ]
    _check_blocks(config, "tables", blocks)
    settings = [table["setting"] for table in config["tables"]]
    if len(set(settings) & set(config["settings"])) < len(settings):
        raise ConfigError(
            f"tables is {show(settings)} by setting; each must be an entry of settings, and has "
            "one table"
        )


def _check_by_dataset(config: Config) -> None:
    """Make sure that parameters with a value for each dataset name datasets that there are."""
    known = list(dict.fromkeys([*config["datasets"], *REGISTRY, DEFAULT]))
    given = [
        (f"methods.{name}.{key}", dataset)
        for name, parameters in config["methods"].items()
        for key, value in parameters.items()
        if isinstance(value, Mapping)
        for dataset in value
    ]
    for path, dataset in given:
        if dataset not in known:
            raise ConfigError(f"{join(path, dataset)} is of no dataset; {nearest(dataset, known)}")


def _check_blocks(config: Config, path: str, blocks: Iterable[Mapping[str, Any]]) -> None:
    for number, block in enumerate(blocks):
        given = {section: block.get(section, {}) for section in entries.SECTIONS}
        try:
            graphs = block_datasets(config, block)
            entries.variations(config, "settings", given["settings"])
            entries.variations(config, "methods", given["methods"])
            for dataset in graphs:
                entries.variations(config, "splits", given["splits"], dataset)
                entries.variations(config, "partitions", given["partitions"], dataset)
        except ConfigError as error:
            raise ConfigError(f"{path}.{number}: {error}") from None
        for setting in () if "methods" in block else block.get("settings", {}):
            if variants.base(setting) not in main_tables(config):
                raise ConfigError(
                    f"{path}.{number} names no methods, and its setting {setting} has no main "
                    "table with any"
                )
