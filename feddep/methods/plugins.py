"""Methods from outside this package: of files that a configuration names, and of other distributions that are installed.

A plugin declares its methods as the methods here do, in ``METHODS``.  Its code has no revision that anybody must raise, so
keys hold the digest of its file, or the name and version of its distribution.
"""

import ast
import dataclasses
import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import metadata, util
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from feddep.methods import registry
from feddep.methods.method import Method
from feddep.utils.errors import ConfigError, one_line
from feddep.utils.parameters import Parameters

GROUP = "feddep.methods"
"""The group of entry points by which a distribution offers methods; each names a module with ``METHODS``."""
STAGES = ("pretrain", "prototypes", "generator")
"""Stages that a step may have: rules of the workflow."""
_OURS = "feddep."
_FILE = "feddep_plugin_"
"""What the names of modules begin with that are files; the digest follows."""
_SHOWN = 300
"""Most characters of what plugins say in their errors."""


@dataclasses.dataclass(frozen=True)
class Plugin:
    """Where methods come from.

    Attributes:
        title: the file or the entry point, for error messages.
        identity: what keys know its code by, as JSON.
        module: name of the module that declares the methods.
        place: its file, absolute, or the folder of its package.
    """

    title: str
    identity: dict[str, str]
    module: str
    place: Path

    def sources(self) -> list[str]:
        """The source of its file, or of every module of its package."""
        files = sorted(self.place.rglob("*.py")) if self.place.is_dir() else [self.place]
        return [file.read_text(encoding="utf-8") for file in files]


_PLUGINS: dict[str, Plugin] = {}
"""The plugin of each method that is not of this package, by the method's name."""


def use(files: Sequence[str] = ()) -> None:
    """Make the methods of plugins known to :mod:`feddep.methods.registry`, for the rest of the process.

    Args:
        files: Python files; a file that has changed since is loaded again.

    Raises:
        ConfigError: if a file is missing, cannot be imported, or declares no methods, or the name of one is taken.
    """
    _use_distributions()
    for number, file in enumerate(files):
        _use_file(file, f"plugins.{number}")


def plugin_of(method: str) -> Plugin | None:
    """The plugin that a method comes from; None for one of this package."""
    return _PLUGINS.get(method)


def identity_of(method: str, function: str | None = None) -> dict[str, dict[str, str]]:
    """What a key holds beside revisions, under ``plugin``; nothing for a method of this package.

    Args:
        method: name of the method.
        function: ``"module:function"`` of one of its steps; one of this package is known by its revision, whoever uses it.
    """
    plugin = plugin_of(method)
    return {} if plugin is None or (function or "").startswith(_OURS) else {"plugin": plugin.identity}


def built_in() -> dict[str, Method]:
    """The methods of this package, by name, sorted."""
    return {name: method for name, method in registry.methods().items() if name not in _PLUGINS}


@cache
def _use_distributions() -> None:
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda each: (each.name, each.value)):
        distribution = point.dist
        name, version = (distribution.metadata["Name"], distribution.version) if distribution else (point.name, "unknown")
        title = f"the plugin {name} {version}, entry point {point.name},"
        module = _imported(title, point.load)
        if not isinstance(module, ModuleType):
            raise ConfigError(f"{title} names {point.value}, which is no module; it must name one, as PACKAGE.MODULE")
        _register(Plugin(title, {"distribution": name, "version": version}, module.__name__, _package_folder(module)), module)


def _package_folder(module: ModuleType) -> Path:
    """The folder of the package that a module belongs to, or the module's file where it belongs to none."""
    top = sys.modules[module.__name__.partition(".")[0]]
    file = Path(str(top.__file__)).resolve()
    return file.parent if file.name == "__init__.py" else file


def _use_file(file: str, key: str) -> None:
    path, title = Path(file), f"{key}, {file},"
    if path.suffix != ".py":
        raise ConfigError(f"{title} is no Python file; the name of a plugin ends with .py")
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # the latter of a name that no file has
        reason = one_line(getattr(error, "strerror", None) or str(error))
        raise ConfigError(f"{title} cannot be read: {reason}; a relative path begins at the working folder") from None
    digest = hashlib.sha256(content).hexdigest()
    plugin = Plugin(title, {"sha256": digest}, f"{_FILE}{digest[:16]}", path.resolve())
    if any(each.module == plugin.module for each in _PLUGINS.values()):
        return
    _register(plugin, _imported(title, lambda: _execute(plugin, content)))


def _execute(plugin: Plugin, content: bytes) -> ModuleType:
    """A file as a module; what is executed is ``content``, which the digest is of."""
    try:
        tree = ast.parse(content, plugin.place.name)
    except ValueError as error:  # what Python before 3.11.4 says of a null byte
        raise SyntaxError(str(error)) from None
    for name in _imported_from_beside(tree, plugin.place.parent):
        raise ImportError(f"{name} lies beside it, and would be in no key: put all in one file, or make a distribution")
    module = ModuleType(plugin.module)
    module.__file__ = str(plugin.place)
    sys.modules[plugin.module] = module  # where classes look for their module
    try:
        exec(compile(tree, str(plugin.place), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[plugin.module]
        raise
    return module


def _imported_from_beside(tree: ast.Module, folder: Path) -> Iterator[str]:
    """Modules in a folder that source imports, anywhere."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{'.' * node.level}{node.module or ''}"]
        for name in names:
            top = name.partition(".")[0]
            there = (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file()
            if name.startswith(".") or (there and f"{top}." != _OURS and top not in sys.stdlib_module_names):
                yield name


def _imported(title: str, imported: Callable[[], Any]) -> Any:
    """What an import gives; an error of the imported code is one sentence."""
    try:
        return imported()
    except SyntaxError as error:
        line = "" if error.lineno is None else f" in line {error.lineno}"
        raise ConfigError(f"{title} is not valid Python: {one_line(str(error.msg))}{line}") from None
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{title} cannot be imported ({_told(error)})") from None


def _told(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}")[:_SHOWN]


def _register(plugin: Plugin, module: ModuleType) -> None:
    """Add what a module declares to the methods that are known, all or nothing.

    What another version of the same file has declared is removed.
    """
    if any(each == plugin for each in _PLUGINS.values()):
        return
    declared = getattr(module, "METHODS", None)
    right = isinstance(declared, tuple | list) and declared and all(isinstance(each, Method) for each in declared)
    if not right:
        held = "no METHODS" if declared is None else f"METHODS of type {type(declared).__name__}, which is not that"
        raise ConfigError(f"{plugin.title} has {held}; it must have a tuple of Method: METHODS = (Method(...),)")
    former = {name for name, each in _PLUGINS.items() if each.place == plugin.place and each.module.startswith(_FILE)}
    known = {name: each for name, each in registry.methods().items() if name not in former}
    for method in cast(Sequence[Method], declared):
        if method.name in known:
            other = _PLUGINS[method.name].title if method.name in _PLUGINS else "the benchmark itself"
            raise ConfigError(f"{plugin.title} declares {method.name}, a name that {other} has taken; choose another")
        _check(plugin, method)
        known[method.name] = method
    for name in former:
        del _PLUGINS[name]
    _PLUGINS.update(dict.fromkeys((method.name for method in cast(Sequence[Method], declared)), plugin))
    everything = cast(dict[str, Method], registry.methods())  # the one that all read
    everything.clear()
    everything.update(sorted(known.items()))


def _check(plugin: Plugin, method: Method) -> None:
    """Make sure that a method can be planned: its name, its parameters, its functions, its steps."""
    name = method.name
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,99}", name):
        reason = "its name must be of lower-case letters, digits and _, a letter first"
    elif not isinstance(method.parameters, type) or not issubclass(method.parameters, Parameters):
        reason = "its parameters must be a class derived from feddep.utils.parameters.Parameters"
    else:
        try:
            steps = [(f"its step {step.name}", step.function, step.stage) for step in method.steps(method.parameters())]
        except Exception as error:
            reason = f"its parameters have no defaults that its steps can do with ({_told(error)})"
        else:
            functions = [("it", method.function, STAGES[0]), *steps]
            wrong = (_wrong_function(plugin, *each) for each in functions)
            reason = next((each for each in wrong if each), "")
    if reason:
        raise ConfigError(f"{plugin.title} declares the method {name!r}, and {reason}")


def _wrong_function(plugin: Plugin, what: str, function: str, stage: str) -> str:
    """What is wrong with the function of a method or step; nothing if it is there."""
    if stage not in STAGES:
        return f"{what} has the stage {stage!r}; allowed: {', '.join(STAGES)}"
    module, _, name = str(function).partition(":")
    try:
        there = callable(getattr(sys.modules[module], name, None)) if module in sys.modules else bool(util.find_spec(module))
    except (ImportError, ValueError):
        there = False
    if there:
        return ""
    return f'{what} names the function {function!r}, which is not there; write f"{{__name__}}:NAME" for one of the same file'
