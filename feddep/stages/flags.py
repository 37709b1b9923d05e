"""Flags that several stages have, and what they mean."""

import argparse
import json
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path

from feddep.config.loading import Config, load, validate
from feddep.config.models import check_mirror
from feddep.utils.errors import ConfigError, one_line

ENVIRONMENT = "FEDDEP_CONFIG"
"""The environment variable by which the workflow hands its resolved configuration to the stages, as JSON."""


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the flag that names the configuration."""
    parser.add_argument(
        "--config",
        type=Path,
        action="append",
        metavar="FILE",
        help="configuration, YAML; of several, later ones over earlier ones (default: the one that the workflow hands on)",
    )


def config_of(arguments: argparse.Namespace) -> Config:
    """The configuration that the flags name, or else the workflow's.

    Raises:
        ConfigError: if there is neither, or as :func:`feddep.config.loading.load`.
    """
    if arguments.config is not None:
        return load(*arguments.config)
    if not os.environ.get(ENVIRONMENT):
        raise ConfigError("no configuration is given; name one with --config, such as config/config.yaml")
    try:
        given = json.loads(os.environ[ENVIRONMENT])
        raw = {**given, "studies": [{"name": name, **study} for name, study in given["studies"].items()]}
        return validate(raw)
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError, ConfigError) as error:
        raise ConfigError(
            f"the environment variable {ENVIRONMENT}, by which the workflow hands its configuration on, holds none "
            f"({one_line(str(error))}); remove it, and name a configuration with --config"
        ) from None


def mirror_of(config: Config) -> str | None:
    """The mirror of raw files that the configuration or the environment names.

    Raises:
        ConfigError: if that of the environment is neither a folder nor an http(s) URL.
    """
    place = os.environ.get("FEDDEP_DATA_MIRROR")
    if config["data"]["mirror"] or not place:
        return config["data"]["mirror"]
    try:
        return check_mirror(place)
    except ValueError as error:
        raise ConfigError(f"the environment variable FEDDEP_DATA_MIRROR is {place!r}: {error}") from None


def seed(text: str) -> int:
    """A seed on the command line: an integer that every random generator takes."""
    return _integer(text, 0, 2**63 - 1)


def count(text: str) -> int:
    """A number of things on the command line, 1 or more."""
    return _integer(text, 1, 10**6)


def _integer(text: str, least: int, most: int) -> int:
    if not re.fullmatch(r"-?[0-9]{1,30}", text) or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer from {least} to {most}")
    return int(text)


def number(text: str, least: float, most: float) -> float:
    """A number on the command line, within bounds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {least:g} to {most:g}")
    return value


def named_files(flag: str, given: Sequence[str]) -> dict[str, Path]:
    """The files of a flag that takes NAME=FILE and may be given several times, by name.

    Raises:
        ConfigError: if one is not of this form, or a name occurs twice.
    """
    files: dict[str, Path] = {}
    for text in given:
        name, _, file = text.partition("=")
        if not name or not file or name in files:
            raise ConfigError(f"--{flag} is {text!r}; it must be NAME=FILE, each name once")
        files[name] = Path(file)
    return files


def add_key(parser: argparse.ArgumentParser) -> None:
    """Add the flag by which the workflow says which content key it expects."""
    parser.add_argument("--key", help="content key that the result must have; any without it")


def check_key(arguments: argparse.Namespace, key: str) -> None:
    """Make sure that the result will be the one that was asked for.

    Raises:
        ConfigError: if the configuration, a graph of one's own or a revision has changed since the workflow was planned.
    """
    if arguments.key not in (None, key):
        raise ConfigError(
            f"the key of this job is {key[:12]}…, but {arguments.key[:12]}… was planned: the configuration, a graph of your "
            "own or a revision has changed meanwhile; run the workflow again"
        )
