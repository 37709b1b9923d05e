"""Methods of one's own: known by name, their content in keys, and every mistake one sentence."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from feddep import api
from feddep.cli import main
from feddep.config import reference
from feddep.config.loading import validate
from feddep.experiment import keys, plan, records, step_jobs
from feddep.experiment.fingerprint import code_fingerprint
from feddep.methods import plugins, registry
from feddep.utils.errors import ConfigError

RAW: dict[str, Any] = {
    "datasets": {"mini": {"synthetic": {"nodes": 60, "classes": 3, "communities": 6, "features": 30}}},
    **{"clients": [2], "seeds": [0], "settings": {"quick": {"rounds": 1, "hidden_channels": 8}}},
    "partition": {"delta": 5},
    "methods": {"fedavg": {}, "mine": {}},
}
MINE = """
from feddep.methods.basic import NoParameters, fedavg
from feddep.methods.method import Method


def run(task, parameters, steps):
    return fedavg.run(task)


METHODS = (Method("mine", "Mine", NoParameters, f"{__name__}:run"),)
"""
WITH_STEPS = """
from feddep.methods.feddep import PRETRAINING, FedDEPParameters
from feddep.methods.method import Method, Step, StepResult
from feddep.utils.parameters import Parameters

OWN = Step("mine.prototypes", "prototypes", f"{__name__}:compute", Parameters, needs=("pretrain",))


def compute(task, parameters, results):
    return StepResult({})


def run(task, parameters, steps):
    raise NotImplementedError


METHODS = (Method("mine", "Mine", FedDEPParameters, f"{__name__}:run", steps=lambda parameters: (PRETRAINING, OWN)),)
"""
RUN = plan.Run("quick", "mini", 2, "mine", 0)


@pytest.fixture(autouse=True)
def forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Plugins of a test are not known to others."""
    known, of_plugins = dict(registry.methods()), dict(plugins._PLUGINS)
    monkeypatch.chdir(tmp_path)
    yield
    for mapping, before in ((registry.methods(), known), (plugins._PLUGINS, of_plugins)):
        mapping.clear()  # type: ignore[attr-defined]
        mapping.update(before)  # type: ignore[attr-defined]
    plugins._use_distributions.cache_clear()


def using(text: str, file: str = "mine.py") -> Any:
    """A configuration with a plugin of that text."""
    Path(file).write_text(text)
    return validate({**RAW, "plugins": [file]})


def test_a_method_of_a_file_is_one_of_the_others() -> None:
    config = using(MINE)
    assert config["methods"] == {"fedavg": {}, "mine": {}}
    assert list(registry.methods()) == sorted(registry.methods())
    assert RUN in plan.runs(config)
    assert "mine" not in plugins.built_in()
    assert validate({**RAW, "plugins": ["mine.py"]}) == config


def test_it_is_trained_by_its_own_function() -> None:
    Path("mine.py").write_text(MINE)
    api.load_plugin("mine.py")
    assert api.methods()["mine"] == "Mine"
    graph = api.synthetic_graph(nodes=60, classes=3, communities=6, features=30)
    division = api.split(graph), api.partition(graph, 2, delta=5)
    mine, fedavg = (api.run(name, graph, *division, setting={"rounds": 1, "hidden_channels": 8}) for name in ("mine", "fedavg"))
    assert mine.history.equals(fedavg.history)
    assert re.fullmatch("[0-9a-f]{64}", mine.specification["plugin"]["sha256"])
    assert "plugin" not in fedavg.specification


def test_the_content_of_the_file_is_in_the_key_and_its_place_is_not() -> None:
    config = using(MINE)
    first = keys.run_key(config, RUN)
    Path("elsewhere").mkdir()
    assert keys.run_key(using(MINE, "elsewhere/other.py"), RUN) == first
    assert keys.run_key(using(MINE), RUN) == first
    changed = keys.run_key(using(f"{MINE}# changed\n"), RUN)
    assert changed != first
    assert keys.run_key(using(MINE), RUN) == first
    assert "plugins" not in keys.specification(config, RUN)


def test_keys_of_other_methods_are_what_they_were() -> None:
    fedavg = plan.Run("quick", "mini", 2, "fedavg", 0)
    alone = keys.run_key(validate({**RAW, "methods": {"fedavg": {}}}), fedavg)
    assert keys.run_key(using(MINE), fedavg) == alone
    assert "plugins" not in validate({**RAW, "methods": {"fedavg": {}}})


def test_a_step_of_the_benchmark_is_shared_and_one_of_the_plugin_is_not() -> None:
    pretraining, own = step_jobs.step_jobs(using(WITH_STEPS), RUN)
    shared, *_ = step_jobs.step_jobs(using(WITH_STEPS), plan.Run("quick", "mini", 2, "feddep", 0))
    assert pretraining.key == shared.key
    again, changed = step_jobs.step_jobs(using(f"{WITH_STEPS}#"), RUN)
    assert again.key == pretraining.key
    assert changed.key != own.key
    assert re.fullmatch("[0-9a-f]{64}", own.specification["revisions"]["plugin"]["sha256"])


def test_the_fingerprint_is_of_what_the_file_imports() -> None:
    imported = ("feddep.methods.basic", "feddep.methods.basic.fedavg", "feddep.methods.method")
    expected = code_fingerprint(*sorted({*imported, "feddep.graph.partition", "feddep.graph.scaling", "feddep.graph.split"}))
    assert records.run_fingerprint(using(MINE), RUN) == expected


def test_the_reference_is_of_the_benchmark_alone() -> None:
    before = reference.json_schema(), reference.tables()
    using(MINE)
    assert (reference.json_schema(), reference.tables()) == before


WRONG = {
    "": "has no METHODS; it must have a tuple of Method",
    "METHODS = ()": "has METHODS of type tuple, which is not that",
    "METHODS = 3": "has METHODS of type int, which is not that",
    "METHODS = ('mine',)": "has METHODS of type tuple, which is not that",
    "def": "is not valid Python: invalid syntax in line 1",
    "a = 1\n  b = 2": "is not valid Python: unexpected indent in line 2",
    "\x00": "is not valid Python: source code string cannot contain null bytes",
    "import nosuchmodule": "cannot be imported (ModuleNotFoundError: No module named 'nosuchmodule')",
    "raise SystemExit(3)": "cannot be imported (SystemExit: 3)",
    "1 / 0": "cannot be imported (ZeroDivisionError: division by zero)",
    "raise ValueError('one\\ntwo' + 1000 * 'x')": "cannot be imported (ValueError: one two",
    "import helper": "cannot be imported (ImportError: helper lies beside it, and would be in no key",
    "def f():\n    from helper import a": "cannot be imported (ImportError: helper lies beside it",
    "from . import a": "cannot be imported (ImportError: . lies beside it",
    MINE.replace('"mine"', '"fedavg"'): "declares fedavg, a name that the benchmark itself has taken; choose another",
    MINE.replace('"mine"', '"Mine!"'): "declares the method 'Mine!', and its name must be of lower-case letters",
    MINE.replace('NoParameters, f"', 'dict, f"'): "and its parameters must be a class derived from",
    MINE.replace('f"{__name__}:run"', '"mine:run"'): 'which is not there; write f"{__name__}:NAME" for one',
    MINE.replace("}:run", "}:runs"): "which is not there; write",
    MINE.replace('f"{__name__}:run"', "3"): "it names the function 3, which is not there",
    WITH_STEPS.replace('"prototypes"', '"warmup"'): "its step mine.prototypes has the stage 'warmup'; allowed: pretrain",
    WITH_STEPS.replace("}:compute", "}:computed"): "its step mine.prototypes names the function",
    MINE.replace("METHODS = (", "METHODS = 2 * ("): "declares mine, a name that",
    MINE.replace('}:run"', '}:run", steps=lambda parameters: 1 / 0'): "its parameters have no defaults that its steps",
}


@pytest.mark.parametrize("text", WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_with_a_file_is_one_sentence(text: str) -> None:
    Path("helper.py").write_text("")
    before = dict(registry.methods())
    with pytest.raises(ConfigError) as caught:
        using(text)
    sentence = str(caught.value)
    assert sentence.startswith("plugins.0, mine.py, ")
    assert WRONG[text] in sentence
    assert sentence.isprintable()
    assert len(sentence) < 500
    assert registry.methods() == before


def test_a_plugin_that_went_wrong_leaves_the_one_before() -> None:
    config = using(MINE)
    key = keys.run_key(config, RUN)
    with pytest.raises(ConfigError, match="declares fedavg"):
        using(MINE.replace('"mine"', '"fedavg"'))
    assert keys.run_key(config, RUN) == key


def test_two_files_cannot_take_one_name() -> None:
    Path("other.py").write_text(f"{MINE}# another\n")
    using(MINE)
    with pytest.raises(ConfigError, match=r"plugins\.1, other\.py, declares mine, a name that plugins\.0, mine\.py, has taken"):
        validate({**RAW, "plugins": ["mine.py", "other.py"]})


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("nowhere.py", "plugins.0, nowhere.py, cannot be read: No such file or directory; a relative path begins"),
        ("folder.py", "plugins.0, folder.py, cannot be read: Is a directory"),
        ("mine.txt", "plugins.0, mine.txt, is no Python file; the name of a plugin ends with .py"),
        ("$(touch pwned).py", "plugins.0, $(touch pwned).py, cannot be read"),
        ("a\nb.py", "plugins.0 is "),
    ],
)
def test_a_file_that_is_not_there_is_named(file: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("folder.py").mkdir()
    with pytest.raises(ConfigError, match=re.escape(said)):
        validate({**RAW, "plugins": [file]})
    assert not Path("pwned").exists()


def test_the_command_line_has_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.yaml").write_text("plugins: [nowhere.py]\n")
    assert main(["publish", "--config", str(Path(__file__).parents[2] / "config/config.yaml"), "--config", "config.yaml"]) == 1
    assert capsys.readouterr().err.startswith("feddep publish: plugins.0, nowhere.py, cannot be read: No such file or directory")


def distribution(folder: Path, version: str, module: str, point: str = "my_package.mine") -> None:
    """What an installed distribution leaves in a folder."""
    (folder / "my_package").mkdir(parents=True, exist_ok=True)
    (folder / "my_package" / "__init__.py").write_text("")
    (folder / "my_package" / "mine.py").write_text(module)
    information = folder / "my_package-1.dist-info"
    information.mkdir(exist_ok=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: my-package\nVersion: {version}\n")
    (information / "entry_points.txt").write_text(f"[feddep.methods]\nmine = {point}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path / "site")
    plugins._use_distributions.cache_clear()
    yield tmp_path / "site"
    for name in ("my_package", "my_package.mine"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_installed_distribution_is_known_by_its_version(version: str, site: Path) -> None:
    distribution(site, version, MINE)
    config = validate(RAW)
    assert RUN in plan.runs(config)
    assert plugins.identity_of("mine") == {"plugin": {"distribution": "my-package", "version": version}}
    assert keys.run_key(config, RUN) != keys.run_key(config, plan.Run("quick", "mini", 2, "fedavg", 0))
    assert records.run_fingerprint(config, RUN)
    assert api.methods()["mine"] == "Mine"


@pytest.mark.parametrize(
    ("module", "point", "said"),
    [
        ("import nosuchmodule", "my_package.mine", "cannot be imported (ModuleNotFoundError"),
        ("", "my_package.mine", "has no METHODS"),
        ("METHODS = ()", "my_package.mine:METHODS", "names my_package.mine:METHODS, which is no module"),
        ("", "my_package.nothing", "cannot be imported (ModuleNotFoundError"),
    ],
)
def test_a_wrong_distribution_is_one_sentence(module: str, point: str, said: str, site: Path) -> None:
    distribution(site, "1.0", module, point)
    for _ in range(2):  # it is not forgotten
        with pytest.raises(ConfigError) as caught:
            validate(RAW)
        assert str(caught.value).startswith("the plugin my-package 1.0, entry point mine, ")
        assert said in str(caught.value)
