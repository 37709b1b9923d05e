"""Flags that several stages have, and what they mean."""

import argparse
import json
import os
from pathlib import Path

from feddep.config.loading import Config, load
from feddep.utils.errors import ConfigError

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
    if ENVIRONMENT not in os.environ:
        raise ConfigError("no configuration is given; name one with --config, such as config/config.yaml")
    return Config(json.loads(os.environ[ENVIRONMENT]))


def add_key(parser: argparse.ArgumentParser) -> None:
    """Add the flag by which the workflow says which content key it expects."""
    parser.add_argument("--key", help="content key that the result must have; any without it")


def check_key(arguments: argparse.Namespace, key: str) -> None:
    """Make sure that the result will be the one that was asked for.

    Raises:
        ConfigError: if the configuration or a revision has changed since the workflow was planned.
    """
    if arguments.key not in (None, key):
        raise ConfigError(
            f"the key of this job is {key[:12]}…, but {arguments.key[:12]}… was planned: the configuration or a revision has "
            "changed meanwhile; run the workflow again"
        )
