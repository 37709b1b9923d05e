"""The command ``python -m feddep privacy``."""

import math
import subprocess
import sys
import unicodedata

import numpy as np
import pytest

from feddep.__main__ import main
from feddep.graph.partition import Partition
from feddep.privacy.accountant import Guarantee, SamplingParameters, published_guarantee
from feddep.privacy.formatting import format_delta
from feddep.utils.storage import read_json
from graphs import random_graph

TERMS = ["--fanout", "5", "--layers", "2", "--epochs", "50", "--rate", "0.5", "--delta-prime", "1e-5"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["privacy", *arguments]) == 0
    return capsys.readouterr().out


def test_every_step_is_printed_and_written(capsys, tmp_path):
    output = tmp_path / "privacy.json"
    text = run(capsys, "--degree", "15", *TERMS, "--output", str(output))
    work = published_guarantee(15, SamplingParameters(5, 2, 50, 0.5, 1e-5))
    for step in work.steps:
        assert any(f"{step.value:.6g}" in line and step.formula in line and step.source in line for line in text.splitlines())
    written = read_json(output)
    assert written["terms"] == {"fanout": 5, "layers": 2, "epochs": 50, "rate": 0.5, "slack": 1e-5}
    assert written["degree"]["final"] == work.final.as_dict()
    assert written["degree"]["exact"][1]["lengths"] == [15, 16]
    assert written["degree"]["exact"][1]["one"]["delta"] == pytest.approx(5 / 16)
    assert "the guarantee is vacuous" in text
    assert "FedDEP's picks generated embeddings" in text
    assert "Lemma B.1 is wrong" not in text


def test_the_defaults_are_one_sampling(capsys):
    text = run(capsys, "--degree", "15", "--fanout", "5")
    assert "0.374693" in text
    assert "vacuous" not in text
    assert "∞" in text  # U without slack


def test_the_border_is_pointed_out(capsys):
    text = run(capsys, "--degree", "5", "--fanout", "5")
    assert "Lemma B.1 is wrong for a least degree of 5: in such a graph there may be lists of 5 and 6 neighbours" in text
    assert "δ = 0.9616 for every ε" in text


def test_a_smaller_least_degree_than_that_of_the_border_is_refuted_too(capsys, tmp_path):
    output = tmp_path / "privacy.json"
    text = run(capsys, "--degree", "3", "--fanout", "5", "--output", str(output))
    assert "Lemma B.1 is wrong for a least degree of 3: in such a graph there may be lists of 5 and 6 neighbours" in text
    assert [each["lengths"] for each in read_json(output)["degree"]["exact"]] == [[2, 3], [3, 4], [5, 6]]
    assert "Lemma B.1 is wrong" not in run(capsys, "--degree", "2", "--fanout", "5")
    assert "for a least degree of 6, if a node may keep 5:" in run(capsys, "--degree", "6", "--fanout", "5")


def test_both_sides_and_what_selection_gives_are_shown(capsys, tmp_path):
    output = tmp_path / "privacy.json"
    text = run(capsys, "--degree", "6", "--fanout", "2", "--rate", "0.1", "--output", str(output))
    assert "one sampling has δ = 0.08894 with the amplified ε, and not r δ = 0.03333" in text
    shorter, _ = read_json(output)["degree"]["exact"]
    assert (shorter["absent"]["delta"], shorter["present"]["epsilon"]) == (0, 0)
    assert shorter["absent"]["epsilon"] == pytest.approx(math.log(6 / 4))


def test_columns_are_aligned(capsys):
    lines = run(capsys, "--degree", "15", *TERMS).splitlines()
    header, *rows = lines[1:17]
    start = header.index("formula")
    for row in rows:
        shown = "".join(character for character in row if not unicodedata.combining(character))
        assert shown[start - 2 : start] == "  "
        assert shown[start] != " "


def test_a_graph_is_examined_client_by_client(capsys, tmp_path):
    graph = random_graph(40, 90)
    graph.save(tmp_path / "graph.safetensors")
    Partition(np.arange(40) % 2, 2).save(tmp_path / "partition.safetensors")
    files = ["--graph", str(tmp_path / "graph.safetensors"), "--partition", str(tmp_path / "partition.safetensors")]
    text = run(capsys, *files, *TERMS, "--output", str(tmp_path / "privacy.json"))
    clients = read_json(tmp_path / "privacy.json")["clients"]
    assert [client["client"] for client in clients] == [0, 1]
    for client in clients:
        own = graph.subgraph(np.arange(client["client"], 40, 2))
        assert client["degree_counts"] == np.bincount(own.degrees).tolist()
        assert client["remark"][1:] + "." in text
    assert "Lemma B.1 is wrong for nodes of 5 or 6 neighbours" in text

    text = run(capsys, *files[:2], "--fanout", "2")
    assert "the graph" in text
    assert "Lemma B.1" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fanout", "5"], "give its length with --degree, or a graph with --graph"),
        (["--fanout", "5", "--degree", "2", "--partition", "p"], "name the graph with --graph"),
        (["--fanout", "5", "--degree", "0"], "the degree D is 0, an isolated node"),
        (["--fanout", "0", "--degree", "2"], "the fan-out d is 0"),
        (["--fanout", "5", "--degree", "2", "--rate", "nan"], "the rate r is nan; it must be a number from 0 to 1"),
        (["--fanout", "5", "--graph", "nowhere.safetensors"], "nowhere.safetensors does not exist"),
    ],
)
def test_a_mistake_is_one_sentence(capsys, tmp_path, arguments, message):
    output = tmp_path / "privacy.json"
    assert main(["privacy", *arguments, "--output", str(output)]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("feddep privacy: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not output.exists()


def test_the_theorem_needs_no_heavy_library():
    code = "import sys, feddep.privacy.accountant; sys.exit(any(name in sys.modules for name in ('numpy', 'scipy', 'torch')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    code = "import sys, feddep.stages.sampling_privacy, feddep.privacy.sampling_guarantees; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("log_rest", "shown"),
    [
        (0.0, "0"),
        (math.log(0.5), "0.5"),
        (-math.inf, "1"),
        (math.log(2.46e-18), "1 − 2.5e-18"),
        (math.log(9.99e-6), "1 − 1.0e-5"),
        (-2302.585092994046, "1 − 1.0e-1000"),
    ],
)
def test_a_delta_near_one_is_shown_by_its_distance(log_rest, shown):
    assert format_delta(Guarantee(0.0, log_rest)) == shown
