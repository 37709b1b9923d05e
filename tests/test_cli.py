"""The command line: light to start, helpful, and short when something is wrong."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import torch

from feddep import api, cli
from feddep.datasets.public_graphs import REGISTRY
from feddep.methods import registry
from feddep.utils.errors import DataError
from feddep.utils.files import write_text

QUICK = [
    "--clients",
    "3",
    "--seeds",
    "2",
    "--set",
    "rounds=2",
    "--set",
    "hidden_channels=8",
    "--device",
    "cpu",
]


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    graph = api.synthetic_graph(nodes=160, communities=12)
    file = tmp_path_factory.mktemp("graph") / "graph.pt"
    torch.save(api.to_pyg(graph), file)
    assert api.load_graph(file).fingerprint == graph.fingerprint
    return file


def test_finished_runs_are_kept_where_a_later_one_fails(
    graph_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run, calls = api.run, []

    def third_fails(*given, **options):
        calls.append(given)
        if len(calls) == 3:
            raise DataError("no more")
        return run(*given, **options)

    monkeypatch.setattr(api, "run", third_fails)
    output = ["--output", str(tmp_path / "out")]
    given = ["compare", "fedavg", "local", "--graph", str(graph_file), *QUICK, *output]
    assert cli.main(given) == 1
    kept = pd.read_csv(tmp_path / "out" / "runs.csv")
    assert kept[["method", "seed"]].to_numpy().tolist() == [["fedavg", 0], ["local", 0]]


@pytest.mark.slow
def test_a_comparison_does_not_depend_on_the_environment(graph_file: Path, tmp_path: Path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    environment = {"MPLBACKEND": "none such", "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    given = ["compare", "fedavg", "local", "--graph", str(graph_file), *QUICK, "--output", "out"]
    found = subprocess.run(
        [sys.executable, "-m", "feddep", *given],
        cwd=tmp_path,
        env={**{key: os.environ[key] for key in os.environ if key != "HOME"}, **environment},
        capture_output=True,
        check=True,
    )
    assert b"| FedAvg | 2 " in found.stdout
    assert cli.main([*given[:-1], str(tmp_path / "here")]) == 0
    assert (tmp_path / "out/figure.svg").read_bytes() == (tmp_path / "here/figure.svg").read_bytes()


def test_run_writes_a_row_a_seed(graph_file: Path, tmp_path: Path):
    assert (
        cli.main(
            [
                "run",
                "fedavg",
                "--graph",
                str(graph_file),
                *QUICK,
                "--output",
                str(tmp_path / "runs.csv"),
            ]
        )
        == 0
    )
    found = pd.read_csv(tmp_path / "runs.csv")
    assert found["seed"].tolist() == [0, 1]
    expected = api.compare(
        ["fedavg"], str(graph_file), 3, 2, setting={"rounds": 2, "hidden_channels": 8}, device="cpu"
    )
    for column in ("test", "local_before", "local_after", "validation", "bytes"):
        assert found[column].tolist() == expected[column].tolist()


def test_compare_pairs_methods_by_seed(graph_file: Path, tmp_path: Path):
    plugin = Path(__file__).parents[1] / "docs" / "examples" / "fedpub_like.py"
    folder = tmp_path / "made"
    assert (
        cli.main(
            [
                "compare",
                "fedavg",
                "local",
                str(plugin),
                "--graph",
                str(graph_file),
                *QUICK,
                "--output",
                str(folder),
            ]
        )
        == 0
    )
    runs, found = pd.read_csv(folder / "runs.csv"), pd.read_csv(folder / "differences.csv")
    assert list(runs["method"].unique()) == ["fedavg", "local", "fedpub_like"]
    wide = runs.pivot(index="seed", columns="method", values="test")
    assert found["method"].tolist() == ["local", "fedpub_like"]
    np.testing.assert_allclose(
        found["mean_difference"],
        [(wide[name] - wide["fedavg"]).mean() for name in found["method"]],
        atol=1e-6,
    )
    assert (folder / "page.md").is_file()
    assert (folder / "figure.svg").is_file()


def test_lists(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["datasets"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == list(REGISTRY)
    assert cli.main(["methods"]) == 0
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} >= set(
        registry.built_in()
    )
    assert cli.main(["methods", "feddep"]) == 0
    assert "prototypes = 15" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "fedavgg", "--graph", "cora"], "fedavgg"),
        (["run", "fedavg", "--graph", "nowhere.npz"], "nowhere.npz"),
        (["run", "fedavg", "--graph", "coraa"], "cora,"),
        (["run", "fedavg", "--graph", "cora", "--set", "rounds=1", "--set", "rounds=2"], "rounds"),
        (["compare", "nowhere.py", "--graph", "cora"], "nowhere.py"),
        (["methods", "nothing"], "nothing"),
        (["verify", "--config", "nowhere.yaml"], "nowhere.yaml"),
        (["rank", "fedadam", "--study", "nothing"], "nothing"),
        (["rank", "fedprox", "--graph", "cora"], "fedprox"),
    ],
)
def test_an_error_is_one_sentence(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"feddep {arguments[0]}: ")
    assert named in line


def test_the_workflow_can_be_copied(tmp_path: Path):
    assert cli.main(["workflow", str(tmp_path / "bench")]) == 0
    assert (tmp_path / "bench" / "workflow" / "Snakefile").is_file()
    assert (tmp_path / "bench" / "config" / "default.yaml").is_file()
    assert (tmp_path / "bench" / "studies" / "feddep" / "depth.yaml").is_file()
    assert cli.main(["workflow", str(tmp_path / "bench")]) == 1


def test_an_output_takes_the_place_of_no_input_and_of_nothing_but_a_file(
    graph_file: Path, tmp_path: Path
):
    os.mkfifo(tmp_path / "pipe")
    before = graph_file.read_bytes()
    for wrong in (graph_file, tmp_path, tmp_path / "pipe", Path(os.devnull)):
        assert (
            cli.main(["run", "fedavg", "--graph", str(graph_file), *QUICK, "--output", str(wrong)])
            == 1
        )
    for wrong in (graph_file, tmp_path / "pipe"):
        assert (
            cli.main(
                ["compare", "fedavg", "--graph", str(graph_file), *QUICK, "--output", str(wrong)]
            )
            == 1
        )
    assert (
        cli.main(["compare", "fedavg", "--graph", str(tmp_path), *QUICK, "--output", str(tmp_path)])
        == 1
    )
    assert graph_file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    with pytest.raises(DataError):
        write_text(tmp_path / "pipe", "")


def test_exhausted_memory_is_one_sentence(
    graph_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")):
        monkeypatch.setattr(api, "compare", Mock(side_effect=error))
        assert cli.main(["run", "fedavg", "--graph", str(graph_file)]) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
    monkeypatch.setattr(api, "compare", Mock(side_effect=RuntimeError("any other")))
    with pytest.raises(RuntimeError):
        cli.main(["run", "fedavg", "--graph", str(graph_file)])
