"""The command ``python -m feddep vesper_privacy``."""

import pytest

from feddep.__main__ import main
from feddep.privacy.vesper_accounting import ACCOUNTANTS, accountant_named, noise_for
from feddep.privacy.vesper_sensitivity import Correction, VerticalTraining
from feddep.utils.storage import read_json

RUN = ["--degree", "5", "--layers", "2", "--batch", "32", "--nodes", "320"]
STEPS = ["--steps", "500", "--delta", "1e-5"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["vesper_privacy", *arguments]) == 0
    return capsys.readouterr().out


def test_all_accountants_stand_side_by_side(capsys, tmp_path):
    output = tmp_path / "vesper.json"
    text = run(capsys, *RUN, *STEPS, "--noise", "20", "--output", str(output))
    written = read_json(output)
    training = VerticalTraining(320, 32, 500, 2, 5)
    assert written["epsilon"].keys() == ACCOUNTANTS.keys()
    for line, name in zip(text.splitlines()[3:], ACCOUNTANTS, strict=False):
        value = written["epsilon"][name]
        assert value == accountant_named(name, training).epsilon(20, 1e-5)
        assert line.split()[:2] == [name, f"{value:.4g}"]
    assert "N_e = 12, γ = 0.7241, Σ S² = 4, corrected 20" in text
    assert written["training"]["correction"]["weights"] == "stopped"


@pytest.mark.slow
def test_a_budget_gives_the_noise_or_says_that_none_keeps_it(capsys, tmp_path):
    output = tmp_path / "vesper.json"
    terms = ["--epochs", "50", "--delta", "1e-5", "--weights", "dpsgd", "--gradient-ratio", "2", "--bounding", "receiver"]
    text = run(capsys, *RUN, *terms, "--epsilon", "8", "--edges", "99999", "--output", str(output))
    noise = read_json(output)["noise"]
    correction = Correction(bounding="receiver", weights="dpsgd", gradient_ratio=2.0)
    training = VerticalTraining(320, 32, 500, 2, 5, shuffled=True, correction=correction)
    assert noise["corrected"] == noise_for(accountant_named("corrected", training), 8, 1e-5)
    assert noise["intended"] is None
    assert "Intended: no noise keeps ε = 8 at δ = 1e-05 by this accountant; the least ε, with θ = 1e+06, is 10.13." in text
    assert "50 shuffled epochs" in text


def test_baselines(capsys):
    assert "vfgnn" in run(capsys, *RUN, *STEPS, "--noise", "20", "--aggregation", "vfgnn")
    gcn = run(
        capsys, *RUN, *STEPS, "--noise", "20", "--aggregation", "gcn", "--least-degree", "4", "--once", "--bounding", "none"
    )
    assert "corrected 0.16" in gcn
    trained = run(capsys, *RUN, *STEPS, "--noise", "20", "--weights", "trained")
    assert trained.splitlines()[7].split()[:2] == ["corrected", "∞"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*RUN, "--delta", "1e-5", "--noise", "2"], "the number of steps is missing; give --steps or --epochs"),
        ([*RUN, *STEPS, "--epochs", "3", "--noise", "2"], "--steps is given beside --epochs"),
        ([*RUN, *STEPS, "--noise", "nan"], "the noise θ is nan"),
        ([*RUN, *STEPS, "--noise", "2", "--edges", "100000"], "δ is 1e-05; it must be below 1/|E| = 1e-05"),
        ([*RUN, *STEPS, "--noise", "2", "--edges", "0"], "--edges is 0"),
        ([*RUN, *STEPS, "--noise", "2", "--batch", "321"], "the batch size B is 321; there are only N_T = 320 training nodes"),
        ([*RUN, *STEPS, "--noise", "2", "--batch", "0"], "--batch is 0"),
        ([*RUN, *STEPS, "--noise", "2", "--layers", "0"], "the number of layers L is 0"),
        ([*RUN, *STEPS, "--noise", "2", "--degree", "0"], "the largest degree D is 0"),
        ([*RUN, *STEPS, "--noise", "2", "--aggregation", "gcn"], "D_min is None; it goes with gcn, and gcn needs it"),
        ([*RUN, *STEPS, "--noise", "2", "--aggregation", "gcn", "--least-degree", "9"], "it must be from 2, where"),
        ([*RUN, *STEPS, "--epsilon", "0"], "the budget ε is 0.0"),
        (
            [*RUN, *STEPS, "--epsilon", "8", "--weights", "trained"],
            "no noise keeps ε = 8 at δ = 1e-05 by this accountant; there is no",
        ),
        ([*RUN, "--steps", "5", "--delta", "1e-15", "--epsilon", "8"], "there is no finite ε"),
    ],
)
def test_a_mistake_is_one_sentence(capsys, tmp_path, arguments: list[str], message: str):
    output = tmp_path / "vesper.json"
    assert main(["vesper_privacy", *arguments, "--output", str(output)]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not output.exists()
