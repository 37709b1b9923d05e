"""Specifications of records under the names that options have now."""

from collections.abc import Mapping
from typing import Any

from feddep.methods import registry
from feddep.training.config import TrainingConfig


def migrated(specification: Mapping[str, Any], renames: Mapping[str, Any]) -> dict[str, Any]:
    """A record's specification with renamed options, and with the defaults of options that are new.

    Args:
        specification: as the record has it.
        renames: ``setting``: new names of its options; ``methods``: by the old name of a method its new ``name``, new
            names of its ``options``, and options to ``set``.  Each may be left out.
    """
    setting = _renamed(specification["setting"], renames.get("setting", {}))
    old = specification["method"]
    changes = renames.get("methods", {}).get(old["name"], {})
    options = {key: value for key, value in old.items() if key != "name"}
    name = changes.get("name", old["name"])
    parameters = {**_renamed(options, changes.get("options", {})), **changes.get("set", {})}
    return {
        **specification,
        "setting": TrainingConfig(**setting).model_dump(mode="json"),
        "method": {"name": name, **registry.find(name).parameters(**parameters).model_dump(mode="json")},
    }


def _renamed(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in options.items()}
