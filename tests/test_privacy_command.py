"""The command ``feddep privacy``: its tables are the numbers of the modules, and what cannot be
kept is an error.
"""

import math

import pandas as pd
import pytest

from feddep.cli import main
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
from feddep.privacy_command import _shown

SAMPLING = "sampling --degree 15 --fanout 5 --layers 2 --epochs 50 --rate 0.5 --slack 1e-5"
DPSGD = "dpsgd --nodes 40 --batch-size 8 --epochs 6"
VESPER = "vesper --delta 1e-5 --nodes 320 --batch-size 32 --layers 2 --degree 5"


def test_numbers_are_shown_with_four_digits():
    assert (_shown(math.inf), _shown(0.123456)) == ("∞", "0.1235")


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


@pytest.mark.slow
def test_the_least_noise_for_a_budget_of_dpsgd(tmp_path, capsys):
    found = table(
        f"{DPSGD} --epsilon 3 --degree 2 --layers 1 --level edge", tmp_path, capsys
    ).set_index("hidden")
    assert found.loc["edge", ["all: RDP", "all: PLD"]].min() <= 3
    assert (
        one_and_all_steps(0.99 * found.loc["edge", "σ"], 0.2, 30, 1e-5, binomial_changes(2, 0.2))[
            1
        ].least
        > 3
    )


def test_the_accountants_of_vesper(tmp_path, capsys):
    found = table(f"{VESPER} --steps 500 --noise 20", tmp_path, capsys).set_index("accountant")["ε"]
    training = VerticalTraining(320, 32, 500, 2, 5)
    assert found.to_dict() == {
        name: ACCOUNTANTS[name](training).epsilon(20, 1e-5) for name in ACCOUNTANTS
    }
    correction = Correction(
        bounding="receiver", weights="dpsgd", gradient_ratio=2.0, evaluations=3, nonnegative=True
    )
    training = VerticalTraining(320, 32, 500, 2, 5, shuffled=True, correction=correction)
    flags = "--bounding receiver --weights dpsgd --gradient-ratio 2 --evaluations 3 --nonnegative"
    found = table(
        f"{VESPER} --epochs 50 --epsilon 8 --edges 99999 {flags}", tmp_path, capsys
    ).set_index("accountant")["θ"]
    assert found["certified"] == noise_for(ACCOUNTANTS["certified"](training), 8, 1e-5)
    assert found["paper_fixed"] == math.inf > found["rdp"]
    once = (
        f"{VESPER} --steps 500 --noise 20 --aggregation gcn --least-degree 4 --one-shot "
        "--bounding none --degree-ratio 2"
    )
    correction = Correction(bounding="none", one_shot=True, degree_ratio=2.0)
    training = VerticalTraining(
        320, 32, 500, 2, 5, aggregation="gcn", least_degree=4, correction=correction
    )
    found = table(once, tmp_path, capsys).set_index("accountant")["ε"]
    assert found["certified"] == ACCOUNTANTS["certified"](training).epsilon(20, 1e-5)
    assert (
        "certified"
        in table(f"{VESPER} --steps 500 --noise 20 --aggregation vfgnn", tmp_path, capsys)[
            "accountant"
        ].tolist()
    )


@pytest.mark.parametrize(
    "words",
    [
        "sampling --degree 0 --fanout 5",
        f"{DPSGD} --sigma nan",
        f"{DPSGD} --sigma 2 --degree 3",
        f"{DPSGD} --epsilon 0.001",  # no noise keeps it
        f"{DPSGD} --epsilon 2 --level edge",  # no bound on degrees
        f"{VESPER} --steps 500 --noise nan",
        f"{VESPER} --steps 500 --noise 2 --edges 100000",
        f"{VESPER} --steps 500 --epsilon 0",
        f"{VESPER} --steps 500 --epsilon 8 --weights trained",  # no noise keeps it
        "vesper --delta 1e-5 --nodes 320 --batch-size 0 --epochs 5 --layers 2 --degree 5 --noise 2",
    ],
)
def test_what_is_wrong_or_impossible_is_one_sentence(words, tmp_path, capsys):
    assert main(["privacy", *words.split(), "--csv", str(tmp_path / "out.csv")]) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert not (tmp_path / "out.csv").exists()
