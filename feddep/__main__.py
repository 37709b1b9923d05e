"""The command line: ``python -m feddep STAGE …`` runs one stage of the DAG by hand, as the workflow runs it."""

import argparse
import ast
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path

from feddep import __version__, stages
from feddep.errors import FeddepError


def stage_help() -> dict[str, str]:
    """Each stage with its line of help, read from the source: importing every stage would load every library."""
    directory = Path(stages.__path__[0])
    names = sorted(module.name for module in pkgutil.iter_modules(stages.__path__) if module.name[0] != "_")
    return {name: _constant(directory / f"{name}.py", "HELP") for name in names}


def _constant(path: Path, name: str) -> str:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return ast.literal_eval(node.value)
    raise LookupError(f"{path} defines no {name}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one stage; returns the exit status.

    0 on success, 1 with one sentence on stderr where the user can act on what went wrong, 2 for a wrong command line,
    130 when interrupted.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    helps = stage_help()
    called = arguments[0] if arguments and arguments[0] in helps else None

    parser = argparse.ArgumentParser(prog="python -m feddep", description="Run one stage of FedDEP bench.")
    parser.add_argument("--version", action="version", version=f"feddep {__version__}")
    subparsers = parser.add_subparsers(dest="stage", metavar="STAGE", required=True)
    for name, text in helps.items():
        subparser = subparsers.add_parser(name, help=text, description=text)
        if name == called:
            stage = importlib.import_module(f"{stages.__name__}.{name}")
            stage.add_arguments(subparser)
    parsed = parser.parse_args(arguments)

    try:
        stage.main(parsed)
    except FeddepError as error:
        print(f"feddep {called}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"feddep {called}: interrupted; nothing half-written is left, run it again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
