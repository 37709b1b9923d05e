"""The pages for users from their first block to their last: what they write is written, and what
they run is run.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from feddep import api, cli, leaderboard
from feddep.config.loading import merged, read, validate
from feddep.experiment import plan
from feddep.reporting import studies
from workspace import REPOSITORY


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of each block of code."""
    text = (REPOSITORY / "docs" / "guide" / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def planned(experiment: str) -> list[plan.Run]:
    """The runs of an experiment, each with a key."""
    config = validate(
        merged(read(REPOSITORY / "config" / "default.yaml"), yaml.safe_load(experiment))
    )
    runs = plan.all_runs(config)
    assert len({run.key for run in runs}) == len(runs)
    return runs


def test_graphs_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    kinds, (made, experiment, _, session, divided, changes, _) = zip(
        *blocks("own-data.md"), strict=True
    )
    assert kinds == ("python", "yaml", "sh", "python", "python", "yaml", "sh")
    names: dict[str, Any] = {}
    exec(made, names)
    assert [(str(run.place), str(run.method)) for run in planned(experiment)] == [
        ("people", "global"),
        ("people", "fedavg"),
    ]
    exec(session, names)  # ends with an assertion
    assert (names["graph"].num_nodes, names["graph"].num_features, names["graph"].num_classes) == (
        150,
        8,
        3,
    )
    exec(divided, names)
    assert names["partition"].num_clients == 2
    changed = yaml.safe_dump(merged(yaml.safe_load(experiment), yaml.safe_load(changes)))
    assert [run.clients for run in planned(changed)] == [None, 2]


@pytest.mark.usefixtures("no_plugins")
def test_other_parts_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    _, experiment, _ = (text for _, text in blocks("own-parts.md"))
    given = yaml.safe_load(experiment)
    for name in given["plugins"]:
        shutil.copy(REPOSITORY / "docs" / "examples" / name, name)
    given_graph = api.synthetic_graph(nodes=60, classes=3, communities=6)
    lines = [
        f"{label}: {' '.join(map(str, given_graph.adjacency[[node]].indices))}\n"
        for node, label in enumerate(given_graph.labels)
    ]
    Path("mine.adjlist").write_text("".join(lines))
    config = validate(given)
    runs = plan.study_runs(config, "over_seeds")
    assert len(leaderboard.train(config, runs, tmp_path)) == 2 * 2
    contents = studies.contents(config, "over_seeds")
    assert contents["table.csv"]["method"].tolist() == ["fedavg", "local"]
    assert (contents["table.csv"]["min"] <= contents["table.csv"]["max"]).all()
    graph, split = api.load_graph("mine.adjlist"), api.split(given_graph, method="few")
    assert np.array_equal(graph.edges(), given_graph.edges())
    assert len(split.train) == 2 * 3


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.usefixtures("cora")
def test_common_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    sessions = [text.splitlines() for _, text in blocks("mistakes.md")]
    assert len(sessions) == 10
    for command, printed in sessions:
        assert cli.main(shlex.split(command)[2:]) == 1
        assert capsys.readouterr().err.splitlines()[-1] == printed


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("cora")
def test_readme(tmp_path: Path):
    """Each command as it is printed, but the address; targets of make have tests of their own."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    start, library, compared = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (session,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    clone, enter, demo, activate, run = start.splitlines()
    address = clone.split()[-1]
    assert library == f"pip install git+{address}\n"
    assert activate == "source .venv/bin/activate"
    folder = tmp_path / enter.removeprefix("cd ")
    command = clone.replace(address, REPOSITORY.as_uri()).split()
    subprocess.run([*command, folder], cwd=tmp_path, check=True)
    (folder / "mine.py").write_text(blocks("own-method.md")[0][1])
    made = subprocess.run(
        [*demo.partition("#")[0].split(), "--dry-run"], cwd=folder, capture_output=True, text=True
    )
    assert "--configfile config/demo.yaml" in made.stdout
    (folder / "feddep_command").mkdir()
    feddep = folder / "feddep_command" / "feddep"
    feddep.write_text(f'#!/bin/sh\nexec {sys.executable} -m feddep "$@"\n')
    feddep.chmod(0o755)
    path = os.pathsep.join([str(feddep.parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(folder)}
    for command in (["bash", "-euc", run + "\n" + compared], [sys.executable, "-c", session]):
        subprocess.run(command, cwd=folder, env=environment, check=True)
    found = pd.read_csv(folder / "comparison" / "runs.csv")
    assert found["method"].unique().tolist() == ["fedavg_finetuned", "fedper", "mixed"]


@pytest.mark.dag
@pytest.mark.slow
def test_the_tutorial(tmp_path: Path):
    """In the folders that Dockerfile copies, without the results: it needs no others."""
    dockerfile = (REPOSITORY / "Dockerfile").read_text()
    for name in set(re.findall(r"^COPY --chown=bench (\w+) ", dockerfile, re.M)) - {"results"}:
        shutil.copytree(REPOSITORY / name, tmp_path / name, symlinks=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path)}
    (tmp_path / "mixed.py").write_text(blocks("own-method.md")[0][1])
    said = []
    for kind, text in blocks("tutorial.md"):
        if named := re.match(r"# (\S+\.(?:py|yaml))(, in place of its last two lines)?\n", text):
            file = tmp_path / named[1]
            kept = file.read_text().splitlines(keepends=True)[:-2] if named[2] else []
            file.write_text("".join([*kept, text]))
            continue
        command = {"sh": ["bash", "-euc"], "python": [sys.executable, "-c"]}[kind]
        done = subprocess.run(
            [*command, text], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout)
    rows = pd.read_csv(tmp_path / "results" / "mine" / "runs" / "quick.csv")
    assert sorted(rows["method"]) == ["fedavg", "mixed", "mixed", "mixed"]
    test = rows.loc[rows["parameters"] == "own=0.8", "test"].item()
    assert f"{test:.3f}" in said[-1]  # the same number in Python
