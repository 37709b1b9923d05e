"""The command ``feddep privacy``: its tables are the numbers of the modules, and what cannot be
kept is an error.
"""

import math

import pandas as pd
import pytest
import yaml

from feddep.cli import main
from feddep.config.loading import load
from feddep.experiment.plan import study_runs
from feddep.experiment.verification import Trainer
from feddep.privacy.accountant import (
    SamplingParameters,
    amplified_epsilon_as_printed,
    published_guarantee,
)
from feddep.privacy.dpsgd_accounting import (
    binomial_changes,
    most_roots,
    most_roots_of_node,
    one_and_all_steps,
)
from feddep.privacy.profile import exact_at_node
from feddep.privacy.vesper_accounting import ACCOUNTANTS, noise_for
from feddep.privacy.vesper_sensitivity import Correction, VerticalTraining
from graphs import MINIMAL_CONFIG

SAMPLING = "sampling --degree 15 --fanout 5 --layers 2 --epochs 50 --rate 0.5 --slack 1e-5"
DPSGD = "dpsgd --nodes 40 --batch-size 8 --epochs 6"
VESPER = (
    "vesper vesper_gin --nodes 320 --edges 999 --set batch_size=32 --set rounds=3 "
    "--set local_epochs=2 --parameter degree=5"
)


def table(words: str, tmp_path, capsys) -> pd.DataFrame:
    """What is written, and printed with a line a row."""
    assert main(["privacy", *words.split(), "--csv", str(tmp_path / "out.csv")]) == 0
    found = pd.read_csv(tmp_path / "out.csv")
    assert len(capsys.readouterr().out.splitlines()) == len(found) + 1
    return found


def test_neighbour_sampling(tmp_path, capsys):
    found = table(SAMPLING, tmp_path, capsys)
    theirs = published_guarantee(15, SamplingParameters(5, 2, 50, 0.5, 1e-5))
    assert found["ε"].tolist() == [
        theirs.one.epsilon,
        theirs.composed.epsilon,
        theirs.final.epsilon,
    ]
    assert found["δ"].tolist() == [theirs.one.delta, theirs.composed.delta, theirs.final.delta]
    assert found["δ as printed"].tolist()[1:] == [
        theirs.composed_as_printed.delta,
        theirs.final_as_printed.delta,
    ]
    assert found["ε as printed"].tolist()[2:] == [
        amplified_epsilon_as_printed(theirs.composed.epsilon, 0.5)
    ]
    assert found["exact δ"].tolist()[:2] == [
        exact_at_node(15, 5).delta,
        exact_at_node(15, 5, 100).delta,
    ]


@pytest.mark.slow
def test_dpsgd_under_a_public_bound_on_degrees(tmp_path, capsys):
    found = table(f"{DPSGD} --sigma 2 --degree 3 --layers 2", tmp_path, capsys).set_index("hidden")
    bounds = {
        "edge": most_roots(3, 2),
        "node": most_roots_of_node(3, 2),
        "replaced node": most_roots_of_node(3, 2, True),
    }
    for hidden, roots in {"example": None, **bounds}.items():
        law = None if roots is None else binomial_changes(roots, 0.2)
        one, every = one_and_all_steps(2.0, 0.2, 30, 1e-5, law)
        columns = ["one: RDP", "one: PLD", "all: RDP", "all: PLD"]
        assert found.loc[hidden, columns].tolist() == [one.rdp, one.pld, every.rdp, every.pld]
    assert found.loc["edge", "k"] == bounds["edge"] == 6
    few = table(
        "dpsgd --nodes 4 --batch-size 4 --epochs 1 --sigma 9 --degree 3 --layers 2",
        tmp_path,
        capsys,
    )
    assert few["k"].tolist()[1:] == [4, 4, 4]  # no more than there are


def test_the_least_noise_for_a_budget_of_dpsgd(tmp_path, capsys):
    found = table(f"{DPSGD} --epsilon 500", tmp_path, capsys).iloc[0]
    assert found[["all: RDP", "all: PLD"]].min() <= 500
    assert one_and_all_steps(0.99 * found["σ"], 0.2, 30, 1e-5)[1].least > 500


def test_the_noise_and_the_accounts_of_a_run_of_vesper(tmp_path, capsys):
    found = table(
        f"{VESPER} --set layers=1 --parameter epsilon=8 --parameter delta=1e-6 "
        "--parameter weights=detached --parameter bounding=receiver",
        tmp_path,
        capsys,
    )
    correction = Correction(bounding="receiver", evaluations=3, nonnegative=True)
    training = VerticalTraining(320, 32, 60, 1, 5, correction=correction)
    assert found["θ"].item() == noise_for(ACCOUNTANTS["certified"](training), 8, 1e-6)
    assert {name: found[f"ε: {name}"].item() for name in ACCOUNTANTS} == {
        name: ACCOUNTANTS[name](training).epsilon(found["θ"].item(), 1e-6) for name in ACCOUNTANTS
    }
    once = table(
        f"{VESPER} --set layers=1 --parameter release=one_shot "
        "--parameter weights=frozen --parameter bounding=both --delta 1e-5",
        tmp_path,
        capsys,
    )
    assert "ε: rdp" not in once
    assert once["ε: certified"].item() < math.inf


def test_the_facts_of_vesper_are_those_of_the_runs_of_a_study(tmp_path, capsys, monkeypatch):
    block = {
        "datasets": {"tiny": {}},
        "settings": {"quick": {}},
        "methods": {"gap": {"theta": 2.0}, "vfgnn": {}},
        "seeds": [5, 6],
    }
    raw = {
        **MINIMAL_CONFIG,
        "studies": [
            {
                "name": "one",
                "kind": "tradeoff",
                "title": "One",
                "runs": [
                    {
                        **block,
                        "splits": {"random": {}, "class_balanced": {"train": 0.33, "val": 0.33}},
                    }
                ],
            }
        ],
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(raw))
    found = table(f"vesper gap --study one --config {tmp_path / 'config.yaml'}", tmp_path, capsys)
    config = load(tmp_path / "config.yaml")
    trainer = Trainer(config, tmp_path)
    inputs = [trainer.inputs(run) for run in study_runs(config, "one")]
    assert set(found["N_T"]) == {len(split.train) for _, split, _ in inputs}


@pytest.mark.parametrize(
    "words",
    [
        "sampling --degree 0 --fanout 5",
        f"{DPSGD} --sigma nan",
        f"{DPSGD} --sigma 2 --degree 3",
        f"{DPSGD} --epsilon 0.001",  # no noise keeps it
        f"{DPSGD} --epsilon 2 --level edge",  # no bound on degrees
        f"{VESPER} --parameter theta=nan",
        f"{VESPER} --parameter epsilon=8 --parameter delta=1e-2",  # above 1/|E|
        f"{VESPER} --parameter epsilon=8 --parameter delta=1e-6",  # weights are trained
        "vesper gap --nodes 320",
        "vesper gap --study none",
        "vesper gap --study field_tuned",  # which has no run of gap
    ],
)
def test_what_is_wrong_or_impossible_is_one_sentence(words, tmp_path, capsys):
    assert main(["privacy", *words.split(), "--csv", str(tmp_path / "out.csv")]) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert not (tmp_path / "out.csv").exists()
