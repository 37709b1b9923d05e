"""The command line: light to start, helpful, and short when something is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

from feddep import stages
from feddep.__main__ import main, stage_help

STAGES = sorted(path.stem for path in Path(stages.__path__[0]).glob("[!_]*.py"))


def test_every_stage_has_a_line_of_help():
    helps = stage_help()
    assert list(helps) == STAGES
    assert {"download", "prepare", "split", "partition", "classify", "tables", "figures", "report"} <= set(STAGES)
    assert all(text and "\n" not in text for text in helps.values())


def test_help_names_the_stages(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert all(stage in out for stage in STAGES)


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_explains_its_flags(stage: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main([stage, "--help"])
    assert caught.value.code == 0
    assert "--output" in (out := capsys.readouterr().out) or "--config" in out


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["publish"], ["publish", "--confgi", "x"]])
def test_a_wrong_command_line_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_an_error_is_one_sentence(capsys: pytest.CaptureFixture[str]):
    assert main(["publish", "--config", "nowhere.json"]) == 1
    err = capsys.readouterr().err
    assert err == "feddep publish: nowhere.json does not exist; run the stage that writes it\n"


def test_an_interruption_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    from feddep.stages import publish

    def interrupted(arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(publish, "main", interrupted)
    assert main(["publish", "--config", "a"]) == 130
    assert capsys.readouterr().err.startswith("feddep publish: interrupted")


def test_help_loads_no_heavy_library():
    program = "import sys, feddep.__main__ as m\ntry: m.main(['--help'])\nexcept SystemExit: pass\nprint('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.endswith("False\n")
