"""The command line: ``feddep STAGE …`` runs one stage by hand, as the workflow runs it."""

import argparse
import ast
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from feddep import __version__, stages
from feddep.utils.errors import FeddepError


@dataclass(frozen=True)
class Command:
    """A stage as a user calls it.

    Attributes:
        name: what is typed: the constant COMMAND of the stage's module, or the name of the module.
        module: dotted name of the module.
        help: one line, the constant HELP.
    """

    name: str
    module: str
    help: str


def commands() -> list[Command]:
    """Every stage, sorted; read from the source, as importing every stage would load every library."""
    found = []
    for module in pkgutil.iter_modules(stages.__path__):
        constants = _constants(Path(stages.__path__[0], f"{module.name}.py"))
        if "HELP" in constants:  # a module without it is what stages share
            name = constants.get("COMMAND", module.name)
            found.append(Command(name, f"{stages.__name__}.{module.name}", constants["HELP"]))
    return sorted(found, key=lambda command: command.name)


def _constants(path: Path) -> dict[str, str]:
    """Names that a module sets to text, with the text."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                    found[target.id] = node.value.value
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one stage.

    Args:
        arguments: of the command line; by default those of the process.

    Returns:
        The exit status: 0 on success; 1 where something went wrong that a user can act on, with one sentence on stderr; 2 for a
        wrong command line; 130 when interrupted.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    called = arguments[0] if arguments else None

    parser = argparse.ArgumentParser(prog="feddep", description="Run one stage of FedDEP bench.")
    parser.add_argument("--version", action="version", version=f"feddep {__version__}")
    subparsers = parser.add_subparsers(dest="stage", metavar="STAGE", required=True)
    for command in commands():
        subparser = subparsers.add_parser(command.name, help=command.help, description=command.help)
        if command.name == called:
            stage = importlib.import_module(command.module)
            stage.add_arguments(subparser)
    parsed = parser.parse_args(arguments)

    try:
        stage.main(parsed)
    except KeyboardInterrupt:
        print(f"feddep {called}: interrupted; nothing half-written is left, run it again to go on", file=sys.stderr)
        return 130
    except (FeddepError, OSError, ValidationError) as error:
        print(f"feddep {called}: {_sentence(error)}", file=sys.stderr)
        return 1
    return 0


def _sentence(error: Exception) -> str:
    """One sentence for what a user can act on: a file that cannot be read or written is named, so is a wrong parameter."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error) or type(error).__name__
        return f"{error.filename2 or error.filename}: {reason}" if error.filename else reason
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or error.title
        return f"{where} is {first['input']!r}: {first['msg']}"
    return str(error)
