"""Stage ``config``: the schema and the tables of keys in the folder of configurations, made from the models."""

import argparse
import json
from pathlib import Path

from feddep.config import reference
from feddep.utils.errors import ConfigError
from feddep.utils.storage import read_text, write_text

HELP = "write or check the reference of configuration keys"
COMMAND = "config"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stage's flags."""
    parser.add_argument("--folder", type=Path, default=Path("config"), metavar="DIR", help="where schema.json and README.md are")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write the schema and the generated parts of the README")
    action.add_argument("--check", action="store_true", help="fail if they are not up to date")


def main(arguments: argparse.Namespace) -> None:
    """Write both files, or compare them with what would be written.

    Raises:
        ConfigError: if a file is not up to date.
    """
    readme, schema = arguments.folder / "README.md", arguments.folder / "schema.json"
    made = {
        readme: reference.filled(read_text(readme)),
        schema: json.dumps(reference.json_schema(), indent=1, ensure_ascii=False) + "\n",
    }
    for path, text in made.items():
        if arguments.write:
            write_text(path, text)
        elif not path.is_file() or read_text(path) != text:
            raise ConfigError(f"{path} is not up to date; run `feddep config --write`")
