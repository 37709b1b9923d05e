"""The command line: light to start, helpful, and short when something is wrong."""

import errno
import re
import resource
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from feddep import cli, stages
from feddep.cli import commands, main
from feddep.stages import publish
from feddep.training.config import TrainingConfig
from feddep.utils.storage import write_arrays, write_json
from workspace import restore_interrupts

MODULES = sorted(path.stem for path in Path(stages.__path__[0]).glob("[!_]*.py"))
NAMES = [command.name for command in commands()]


def test_every_stage_has_a_name_and_a_line_of_help():
    shared = {"flags", "job"}  # what stages have in common
    assert {command.module.rpartition(".")[2] for command in commands()} == set(MODULES) - shared
    assert sorted(set(NAMES)) == NAMES
    assert {"download", "prepare", "split", "partition", "classify", "tables", "figures", "report", "config"} <= set(NAMES)
    assert all(re.fullmatch("[a-z][a-z_-]*", name) for name in NAMES)
    assert all(command.help and "\n" not in command.help for command in commands())


def test_help_names_the_stages(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert all(name in out for name in NAMES)


@pytest.mark.parametrize("stage", NAMES)
def test_every_stage_explains_its_flags(stage: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main([stage, "--help"])
    assert caught.value.code == 0
    assert re.search("--(output|config|write)", capsys.readouterr().out)


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["study"], ["publish", "--confgi", "x"]])
def test_a_wrong_command_line_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: feddep" in capsys.readouterr().err


def test_an_error_is_one_sentence(capsys: pytest.CaptureFixture[str]):
    assert main(["publish", "--config", "nowhere.json"]) == 1
    err = capsys.readouterr().err
    assert err == "feddep publish: the configuration nowhere.json does not exist\n"


def test_a_configuration_is_needed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.delenv("FEDDEP_CONFIG", raising=False)
    assert main(["publish"]) == 1
    assert capsys.readouterr().err.startswith("feddep publish: no configuration is given; name one with --config")


def sentence(error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit status and message of a stage that raises an error."""

    def raises(arguments: object) -> None:
        raise error

    monkeypatch.setattr(publish, "main", raises)
    return main(["publish", "--config", "a"]), capsys.readouterr().err


def test_an_interruption_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    status, message = sentence(KeyboardInterrupt(), monkeypatch, capsys)
    assert status == 130
    assert message.startswith("feddep publish: interrupted")


STOPPED = """
import sys, time
from feddep.cli import main
from feddep.stages import publish
from feddep.utils.storage import atomic_path

def write(arguments):
    with atomic_path(sys.argv[1]) as scratch:
        print("half", flush=True)
        time.sleep(60)

publish.main = write
sys.exit(main(["publish", "--config", "a"]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_nothing_half_written(number: signal.Signals, tmp_path: Path):
    command = [sys.executable, "-c", STOPPED, str(tmp_path / "file")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=restore_interrupts
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(number)
        _, printed = process.communicate()
    assert process.returncode == 128 + number
    assert printed == "feddep publish: interrupted; nothing half-written is left, run it again to go on\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "results/a.json"), "results/a.json: No space left on device"),
        (OSError(errno.EISDIR, "Is a directory", ".a", None, "results/a"), "results/a: Is a directory"),
        (OSError(errno.EPIPE, "Broken pipe"), "Broken pipe"),
        (OSError("something"), "something"),
    ],
)
def test_an_error_of_the_system_is_one_sentence(error, message, monkeypatch, capsys):
    assert sentence(error, monkeypatch, capsys) == (1, f"feddep publish: {message}\n")


def test_a_parameter_that_a_stage_refuses_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(ValueError, match="rounds") as caught:
        TrainingConfig(rounds=0)
    status, message = sentence(caught.value, monkeypatch, capsys)
    assert (status, message) == (1, "feddep publish: rounds is 0: Input should be greater than or equal to 1\n")


def test_a_mistake_in_the_code_is_a_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(LookupError):
        sentence(KeyError("a"), monkeypatch, capsys)


@pytest.mark.parametrize("write", [lambda path: write_json(path, {}), lambda path: write_arrays(path, {})])
def test_files_that_cannot_be_written_are_named(write, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(publish, "main", lambda arguments: write(tmp_path / "there" / "file"))
    (tmp_path / "there" / "file").mkdir(parents=True)
    assert main(["publish", "--config", "a"]) == 1
    assert capsys.readouterr().err == f"feddep publish: {tmp_path / 'there' / 'file'}: Is a directory\n"
    (tmp_path / "there" / "file").rmdir()
    (tmp_path / "there").rmdir()
    (tmp_path / "there").write_text("")
    assert main(["publish", "--config", "a"]) == 1
    assert capsys.readouterr().err == f"feddep publish: {tmp_path / 'there'}: File exists\n"


@pytest.mark.parametrize("call", ["write_json(path, ['x' * 9999])", "write_arrays(path, {'x': numpy.zeros(9999)})"])
def test_a_full_disk_is_named(call: str, tmp_path: Path):
    """A limit on the size of files stands in for a full disk."""
    program = f"""
import numpy, sys
from feddep import cli
from feddep.stages import publish
from feddep.utils.storage import write_arrays, write_json
path = {str(tmp_path / "a")!r}
publish.main = lambda arguments: {call}
sys.exit(cli.main(["publish", "--config", "a"]))
"""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    result = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, preexec_fn=limit)
    assert result.returncode == 1, result.stderr
    assert re.fullmatch(rf"feddep publish: {tmp_path}/a.*File too large.*\n", result.stderr)
    assert list(tmp_path.iterdir()) == []


def test_help_loads_no_heavy_library():
    program = "import sys, feddep.cli as m\ntry: m.main(['--help'])\nexcept SystemExit: pass\nprint('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.endswith("False\n")


def test_the_package_runs_as_a_module():
    result = subprocess.run([sys.executable, "-m", "feddep", "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"feddep [\d.]+\S*\n", result.stdout)


def test_the_entry_point():
    table = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert table["project"]["scripts"] == {"feddep": f"{cli.__name__}:{main.__name__}"}
