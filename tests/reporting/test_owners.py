"""Runs that owners judged: tables have the models that validation nodes choose."""

import json
import math

import pandas as pd
import pytest

from fabricated import finished
from feddep.experiment import runs
from feddep.reporting.load import tidy


def judged(before: float, after: float) -> pd.DataFrame:
    measured = {
        **{
            "validation": before,
            "validation_after": after,
            "local_before": 0.6,
            "local_after": 0.7,
        },
        **{"local_before_last": 0.55, "local_after_last": 0.65},
        **{"macro_f1": 0.1, "macro_f1_before": 0.2, "macro_f1_after": 0.3},
        **{
            "client_accuracies": json.dumps([[0.5, 0.8], [0.7, 0.6]]),
            "best_round": json.dumps([2, 4]),
        },
    }
    _, row = finished("fedavg", 0, 0.1)
    return runs.typed(pd.DataFrame([row | measured], columns=list(runs.COLUMNS)))


def test_validation_nodes_choose_between_before_and_after():
    (before,), (after,), (equal,) = (
        tidy(judged(*pair)).to_dict("records") for pair in ((0.8, 0.7), (0.7, 0.8), (0.8, 0.8))
    )
    assert (before["test"], before["test_last"], before["validation"], before["best_round"]) == (
        0.6,
        0.55,
        0.8,
        2.0,
    )
    assert (after["test"], after["test_last"], after["validation"], after["best_round"]) == (
        0.7,
        0.65,
        0.8,
        4.0,
    )
    assert (before["client_accuracies"], after["client_accuracies"]) == ([0.5, 0.7], [0.8, 0.6])
    assert equal["test"] == 0.6
    assert (before["macro_f1"], after["macro_f1"]) == (0.2, 0.3)
    assert (before["worst_client"], after["worst_client"]) == (0.5, 0.6)
    assert (before["client_spread"], after["client_spread"]) == pytest.approx((0.1, 0.1))
    assert (after["local_before"], after["local_after"]) == (0.6, 0.7)


def test_a_client_without_test_nodes_has_no_accuracy():
    recorded = judged(0.8, 0.7)
    recorded["client_accuracies"] = json.dumps([[math.nan, math.nan], [0.5, 0.8], [0.7, 0.6]])
    (run,) = tidy(recorded).to_dict("records")
    assert run["client_accuracies"] == [0.5, 0.7]
    assert (run["worst_client"], run["client_spread"]) == pytest.approx((0.5, 0.1))
