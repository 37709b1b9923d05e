"""The command line: ``feddep STAGE …`` runs one stage by hand, as the workflow runs it."""

import argparse
import ast
import importlib
import os
import pkgutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from feddep import __version__, stages
from feddep.utils import workflow_lock
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
    """``privacy`` and every stage, sorted; stages are read from the source, as importing every one would load every library."""
    found = [Command("privacy", "feddep.privacy_command", "guarantees of neighbour sampling, of DP-SGD and of VESPER's noise")]
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
        wrong command line; 128 and the number of the signal when interrupted, as 130 by Ctrl-C.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    called = arguments[0] if arguments else None

    try:
        with _stoppable():
            _run(arguments, called)
    except KeyboardInterrupt as stop:
        number = stop.args[0] if stop.args else signal.SIGINT
        interrupted = "interrupted; nothing half-written is left, run it again to go on"
        with suppress(OSError):  # whoever would read it may have been stopped as well
            print(f"feddep {called}: {workflow_lock.ENDED if workflow_lock.ended() else interrupted}", file=sys.stderr)
        return 128 + number
    except (FeddepError, OSError, ValidationError) as error:
        print(f"feddep {called}: {_sentence(error)}", file=sys.stderr)
        return 1
    return 0


def _run(arguments: Sequence[str], called: str | None) -> None:
    parser = argparse.ArgumentParser(prog="feddep", description="Run one stage of FedDEP bench.")
    parser.add_argument("--version", action="version", version=f"feddep {__version__}")
    subparsers = parser.add_subparsers(dest="stage", metavar="STAGE", required=True)
    for command in commands():
        subparser = subparsers.add_parser(command.name, help=command.help, description=command.help)
        if command.name == called:
            stage = importlib.import_module(command.module)
            stage.add_arguments(subparser)
    parsed = parser.parse_args(arguments)
    stage.main(parsed)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let SIGTERM, SIGHUP and the end of the workflow that started this process interrupt it as Ctrl-C does."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt(number)

    def watch() -> None:
        while not done.wait(1):
            if workflow_lock.ended():
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    former = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]  # not what nohup ignores
    if threading.current_thread() is not threading.main_thread():
        former = []  # only there can they be set
    done = threading.Event()
    try:
        for number in former:
            signal.signal(number, interrupt)
        if signal.SIGTERM in former and workflow_lock.ENVIRONMENT in os.environ:
            threading.Thread(target=watch, daemon=True).start()
        yield
    finally:
        done.set()
        for number in former:
            signal.signal(number, signal.SIG_DFL)


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
