"""The command ``python -m feddep dpsgd``."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling_laws import roots_of_edges

from feddep.__main__ import main
from feddep.graph.partition import Partition
from feddep.graph.split import Split
from feddep.privacy.changed_trees import most_changed, most_roots, roots_of_nodes
from feddep.privacy.dpsgd_accounting import binomial_changes, edge_level, example_level
from feddep.privacy.dpsgd_guarantees import client_trees
from feddep.utils.storage import read_json
from graphs import random_graph

RUN = ["--batch-size", "8", "--nodes", "80", "--rounds", "3", "--local-epochs", "2"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["dpsgd", *arguments]) == 0
    return capsys.readouterr().out


def test_both_levels_stand_side_by_side(capsys, tmp_path):
    output = tmp_path / "dpsgd.json"
    text = run(capsys, "--sigma", "2", *RUN, "--roots", "30", "--delta", "1e-6", "--output", str(output))
    written = read_json(output)
    assert written["delta"] == 1e-6
    assert written["sampling"] == {"rate": 0.1, "steps": 60}
    example, edge = written["levels"]
    assert example["all_steps"] == example_level(2.0, 0.1, 60, 1e-6).as_dict()
    assert edge["all_steps"] == edge_level(2.0, binomial_changes(30, 0.1), 60, 1e-6).as_dict()
    lines = text.splitlines()
    for line, of in zip(lines[2:4], (example, edge), strict=True):
        numbers = [f"{of[steps][by]:.4g}" for steps in ("one_step", "all_steps") for by in ("rdp", "pld")]
        assert line.split()[-4:] == numbers
    assert "RDP" in lines[1]
    assert "PLD" in lines[1]
    assert (example["bound"], edge["bound"]) == (None, "simple")
    assert "With a graph, --graph, there is a sharper one." in text
    assert "An edge in the trees of up to 30 training nodes (simple bound): what is sent may be e^" in text
    assert "the guarantee is vacuous." in text
    assert "A training node with its sampled tree: what" not in text


def test_rate_and_steps_may_be_given(capsys):
    given_directly = run(capsys, "--sigma", "2", "--rate", "0.1", "--steps", "60")
    assert given_directly == run(capsys, "--sigma", "2", *RUN)
    assert "an edge in" not in given_directly


def test_the_degree_bounds_the_roots(capsys, tmp_path):
    most = most_roots(5, 2)
    bounded = run(capsys, "--sigma", "2", *RUN, "--degree", "5", "--layers", "2", "--level", "edge")
    by_roots = run(capsys, "--sigma", "2", *RUN, "--roots", str(most), "--level", "edge")
    assert bounded.splitlines()[:4] == by_roots.splitlines()[:4]
    assert "A guarantee for every graph of no larger degree" in bounded
    assert "A guarantee for edges only if k is public" in by_roots
    assert "a training node with" not in bounded
    assert "up to 80 training nodes" in run(capsys, "--sigma", "2", *RUN, "--degree", "50", "--layers", "2")


def test_nodes_are_bounded_by_the_degree_alone(capsys, tmp_path):
    output = tmp_path / "dpsgd.json"
    few = ["--sigma", "4", "--rate", "0.1", "--steps", "10", "--output", str(output)]
    run(capsys, *few, "--degree", "3", "--layers", "2")
    written = read_json(output)
    assert written["scope"] == "all graphs"
    assert [(level["level"], level["node"], level["roots"]) for level in written["levels"]] == [
        *(("example", None, None), ("edge", None, 6), ("node", "added or removed", 10), ("node", "replaced", 19))
    ]
    for level in written["levels"][2:]:
        assert level["all_steps"] == edge_level(4.0, binomial_changes(level["roots"], 0.1), 10, 1e-5).as_dict()

    text = run(capsys, *few, "--level", "node")
    assert "without a bound on degrees there is no ε at all" in text
    for level in read_json(output)["levels"]:
        assert level["roots"] is None
        assert level["all_steps"] == {"rdp": None, "pld": None}
    assert "no ε holds for all graphs" in run(capsys, "--sigma", "4", "--rate", "0.1", "--steps", "10")

    run(capsys, "--sigma", "4", "--batch-size", "2", "--nodes", "20", "--rounds", "1", "--level", "node", "--output", str(output))
    assert [level["roots"] for level in read_json(output)["levels"]] == [20, 20]


@pytest.mark.slow
def test_a_budget_gives_the_noise(capsys, tmp_path):
    output = tmp_path / "dpsgd.json"
    few = ["--rate", "0.5", "--steps", "2", "--roots", "2"]
    run(capsys, "--epsilon", "2", *few, "--output", str(output))
    for level in read_json(output)["levels"]:
        least = min(level["all_steps"].values())
        assert 1.9 < least <= 2.0
        again = tmp_path / f"{level['level']}.json"
        run(capsys, "--sigma", str(level["sigma"]), *few, "--level", level["level"], "--output", str(again))
        assert read_json(again)["levels"][0]["all_steps"] == level["all_steps"]


@pytest.mark.slow
def test_clients_of_a_graph(capsys, tmp_path):
    graph = random_graph(60, 140)
    graph.save(tmp_path / "graph.safetensors")
    partition = Partition(np.arange(60) % 2, 2)
    partition.save(tmp_path / "partition.safetensors")
    split = Split(np.arange(36), np.arange(36, 48), np.arange(48, 60))
    split.save(tmp_path / "split.safetensors")
    files = [part for name in ("graph", "partition", "split") for part in (f"--{name}", str(tmp_path / f"{name}.safetensors"))]
    output = tmp_path / "dpsgd.json"
    terms = ["--batch-size", "8", "--rounds", "5", "--layers", "2", "--fanout", "3"]
    text = run(capsys, "--sigma", "3", *files, *terms, "--output", str(output))
    clients = read_json(output)["clients"]
    assert [client["client"] for client in clients] == [0, 1]
    for client in clients:
        own = graph.subgraph(partition.nodes(client["client"]))
        assert (client["training"], client["rate"], client["steps"]) == (18, 8 / 18, 15)
        assert client["roots"] == roots_of_edges(own, np.arange(18), 2).max()
        (facts,) = [each for each in client_trees(graph, partition, split, 2, 3) if each.client == client["client"]]
        assert client["changed"] == facts.changed
        example, edge, simple, node = client["levels"]
        assert [level["bound"] for level in client["levels"]] == [None, "trees", "simple", "simple"]
        assert example["all_steps"] == example_level(3.0, 8 / 18, 15, 1e-5).as_dict()
        assert edge["all_steps"] == edge_level(3.0, most_changed(facts.changes, 8 / 18), 15, 1e-5).as_dict()
        assert simple["all_steps"] == edge_level(3.0, binomial_changes(client["roots"], 8 / 18), 15, 1e-5).as_dict()
        assert edge["all_steps"]["pld"] < simple["all_steps"]["pld"]
        line = next(line for line in text.splitlines() if line.startswith(f"  client {client['client']} "))
        assert line.split()[2:8] == ["18", "0.4444", "15", str(client["roots"]), f"{client['changed']:.4g}", "3"]
        numbers = [level[steps][by] for level in (edge, simple) for steps in ("one_step", "all_steps") for by in ("rdp", "pld")]
        assert line.split()[-10:-3] == ["3", *(f"{number:.4g}" for number in numbers[:4] + numbers[6:])]
        assert (node["node"], node["roots"]) == ("removed", roots_of_nodes(own, np.arange(18), 2).max())
        assert node["all_steps"] == edge_level(3.0, binomial_changes(node["roots"], 8 / 18), 15, 1e-5).as_dict()
        assert line.split()[-3:] == [str(node["roots"]), *(f"{node['all_steps'][by]:.4g}" for by in ("rdp", "pld"))]
    assert read_json(output)["scope"] == "per instance"
    assert "Per instance: k, and how likely trees change, are read off this graph" in text
    whole = run(capsys, "--sigma", "4", *files[:2], *files[4:], *terms, "--level", "example")
    assert "the graph  36" in whole
    assert "edge: σ" not in whole
    budget = tmp_path / "budget.json"
    text = run(capsys, "--epsilon", "9", *files, *terms, "--level", "edge", "--output", str(budget))
    assert "(simple bound)" not in text
    for client in read_json(budget)["clients"]:
        edge, simple = client["levels"]
        assert 8.9 < edge["all_steps"]["pld"] <= 9 < simple["all_steps"]["pld"]
        assert edge["sigma"] == simple["sigma"]  # the noise is for the better bound, and the other stands beside it


def test_below_what_plds_can_tell(capsys, tmp_path):
    output = tmp_path / "dpsgd.json"
    text = run(capsys, "--sigma", "2", *RUN, "--delta", "1e-12", "--output", str(output))
    assert "PLD says nothing for a δ below 1e-10" in text
    assert text.splitlines()[2].endswith("∞")
    assert read_json(output)["levels"][0]["all_steps"]["pld"] is None
    assert "NaN" not in output.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sigma", "nan", *RUN], "the noise multiplier σ is nan"),
        (["--sigma", "-1", *RUN], "the noise multiplier σ is -1.0"),
        (["--sigma", "2", *RUN, "--delta", "nan"], "δ is nan"),
        (["--sigma", "2", *RUN, "--delta", "0"], "δ is 0.0"),
        (["--sigma", "2", "--rate", "nan", "--steps", "3"], "the sampling rate q is nan"),
        (["--sigma", "2", "--rate", "1.5", "--steps", "3"], "the sampling rate q is 1.5"),
        (["--sigma", "2", "--rate", "0.1", "--steps", "-3"], "the number of steps T is -3"),
        (["--sigma", "2", "--rate", "0.1"], "the number of steps is missing; give --steps, or --rounds"),
        (["--sigma", "2", "--rate", "0.1", "--rounds", "3"], "--batch-size and --nodes are needed for the number of steps"),
        (["--sigma", "2", "--steps", "3"], "--batch-size and --nodes are needed for the sampling rate, which --rate gives"),
        (["--sigma", "2", "--rate", "0.1", *RUN], "--rate is given beside --batch-size or --nodes"),
        (["--sigma", "2", "--steps", "3", *RUN], "--steps is given beside --rounds"),
        (["--sigma", "2", "--steps", "3", "--nodes", "0", "--batch-size", "0"], "the batch size B is 0"),
        (["--sigma", "2", "--nodes", "9", "--batch-size", "3", "--rounds", "0"], "--rounds is 0; it must be at least 1"),
        (["--sigma", "2", *RUN, "--level", "edge"], "the edge level needs the number k of training nodes"),
        (["--sigma", "2", *RUN, "--roots", "-1"], "the number of roots k is -1"),
        (["--sigma", "2", *RUN, "--degree", "3"], "give it with --layers"),
        (["--sigma", "2", *RUN, "--degree", "3", "--roots", "3"], "--roots is given beside --degree"),
        (["--sigma", "2", *RUN, "--fanout", "5"], "--fanout goes with a graph; name the graph with --graph"),
        (["--sigma", "2", *RUN, "--split", "s"], "--split goes with a graph; name the graph with --graph"),
        (["--sigma", "2", "--graph", "g", "--rate", "0.1"], "--rate is given, but follows from the graph"),
        (["--sigma", "2", "--graph", "g"], "--split is missing; with --graph it is needed for its training nodes"),
        (["--epsilon", "0", *RUN], "the budget ε is 0.0"),
        (["--epsilon", "nan", *RUN], "the budget ε is nan"),
        (
            ["--epsilon", "1", "--rate", "0.1", "--steps", "3", "--level", "node"],
            "to hide a node that is added or removed, in the trees of any number of training nodes; the least",
        ),
        (
            ["--epsilon", "0.0001", *RUN, "--roots", "40", "--level", "edge"],
            "to hide an edge in the trees of up to 40 training nodes (simple bound); the least",
        ),
    ],
)
def test_a_mistake_is_one_sentence(capsys, tmp_path, arguments, message):
    output = tmp_path / "dpsgd.json"
    assert main(["dpsgd", *arguments, "--output", str(output)]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("feddep dpsgd: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not output.exists()


@settings(max_examples=15)
@given(
    st.sampled_from(["--sigma", "--sigma", "--epsilon"]),
    st.floats(),
    st.floats(-0.5, 1.5) | st.just(math.nan),
    st.integers(-1, 3),
    st.floats(-0.1, 1.1) | st.just(math.nan),
    st.integers(-1, 3),
)
def test_whatever_is_given_no_number_is_nan(tmp_path_factory, given_as, value, rate, steps, delta, roots):
    """It is a sentence and nothing else, or numbers and infinities."""
    output = tmp_path_factory.mktemp("dpsgd") / "dpsgd.json"
    flags = [f"{given_as}={value!r}", f"--rate={rate!r}", f"--steps={steps}", f"--delta={delta!r}", f"--roots={roots}"]
    status = main(["dpsgd", *flags, "--output", str(output)])
    assert status in (0, 1)
    assert output.exists() == (status == 0)
    if status == 0:
        assert "NaN" not in json.dumps(read_json(output))
