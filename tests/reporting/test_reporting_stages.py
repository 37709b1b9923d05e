"""The stages tables, figures and report from the command line."""

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from fabricated import Results

from feddep.__main__ import main
from feddep.utils.files import read_json

TABLES = {
    "accuracy.csv",
    "accuracy.md",
    "accuracy.tex",
    "costs.csv",
    "costs.md",
    "comparisons.csv",
    "effects.csv",
    "effects.md",
    "ranks.csv",
    "ranks.md",
    "partitions.csv",
    "partitions.md",
    "provenance.json",
    "tables.sha256",
}
DRAWN = ("accuracy_feddep", "curves_feddep", "partitions", "ranks_feddep")
FIGURES = {f"{name}.{suffix}" for name in DRAWN for suffix in ("svg", "png")} | {"figures.sha256"}
REPORT = {"report.html", "report.sha256"}


def call(results: Results, stage: str, *flags: str, folder: str | None = None) -> tuple[int, Path]:
    output = Path(results.config["output"], folder or stage)
    return main([stage, "--config", str(results.root / "config.json"), "--output", str(output), *flags]), output


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "files"), [("tables", TABLES), ("figures", FIGURES), ("report", REPORT)])
def test_same_results_same_files(results: Results, stage: str, files: set[str]) -> None:
    contents = []
    for folder in ("once", "again"):
        status, output = call(results, stage, folder=folder)
        assert status == 0
        contents.append({path.name: path.read_bytes() for path in output.iterdir()})
    assert set(contents[0]) == files
    assert contents[0] == contents[1]


def test_csv_is_rounded_and_complete(results: Results) -> None:
    _, output = call(results, "tables")
    text = (output / "accuracy.csv").read_text()
    expected = "cora,5,fedavg,,feddep,3,0.86,0.01,0.84,0.01,0.87,,0.8555,0.014,0.8645,0.005,4,3,0,40000000\n"
    assert expected in text
    assert "\r" not in text
    table = pd.read_csv(StringIO(text), dtype={"clients": "Int64"})
    assert len(table) == 5
    assert table["clients"].isna().sum() == 1  # Global


def test_tables_tell_where_they_come_from(results: Results) -> None:
    _, output = call(results, "tables")
    assert read_json(output / "provenance.json")["configuration"] == results.told


@pytest.mark.slow
def test_print(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    call(results, "tables")
    call(results, "figures")
    capsys.readouterr()
    status, output = call(results, "report", "--print")
    printed = capsys.readouterr().out
    assert status == 0
    assert "Cora, 5 clients (setting feddep)" in printed
    assert "+0.0045" in printed
    root = output.parent
    made = [root / "tables" / "accuracy.md", root / "figures" / "accuracy_feddep.png", output / "report.html"]
    assert [line.split()[-1] for line in printed.splitlines()[-3:]] == [str(path) for path in made]


def test_print_names_only_what_exists(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    call(results, "report", "--print")
    assert "accuracy.md" not in capsys.readouterr().out


@pytest.mark.parametrize("stage", ["tables", "figures", "report"])
def test_a_missing_run_is_one_sentence(results: Results, stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    results.metrics_path(next(results.runs())).unlink()
    status, output = call(results, stage)
    assert status == 1
    error = capsys.readouterr().err
    assert error.startswith(f"feddep {stage}: the run feddep/cora/m5/fedavg/seed0 has not finished")
    assert error.count("\n") == 1
    assert not output.exists()


def test_importing_the_stages_is_cheap() -> None:
    code = (
        "import sys, feddep.stages.write_tables, feddep.stages.write_figures, feddep.stages.write_report\n"
        "print([name for name in ('torch', 'pandas', 'matplotlib', 'scipy', 'jinja2') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
