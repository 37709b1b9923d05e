"""What benchmarks do beside measuring."""

import importlib
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from benchmarks import authors, correction, parity, whole_runs
from feddep.graph import scaling
from feddep.graph.graph import Graph
from graphs import random_graph


def test_peers_read_the_features_that_our_runs_train_on(tmp_path, monkeypatch):
    graph = random_graph(200, 400)
    graph.save(tmp_path / "graph.safetensors")
    read = {}
    for name in ("ours", "plain", "openfgl"):
        monkeypatch.setattr(
            whole_runs,
            name,
            lambda *arguments, name=name: read.update({name: arguments}) or (1.0, 0.5),
        )
    whole_runs.measure(
        "msacademic", tmp_path / "graph.safetensors", ["fedavg"], whole_runs.PEERS, turns=1
    )
    graphs = {
        name: next(each for each in arguments if isinstance(each, Graph))
        for name, arguments in read.items()
    }
    wanted = scaling.scale(graph.features, "minmax")
    assert (wanted != graph.features).nnz > 0
    assert [(graphs[name].features != wanted).nnz for name in ("plain", "openfgl")] == [0, 0]
    # Ours is given the file's, and scales them where it puts its task together.
    assert graphs["ours"].fingerprint == graph.fingerprint


def test_parity_is_of_means_and_medians_over_seeds():
    names = {
        "dataset": "cora",
        "features": "raw",
        "method": "moon",
        "ours": "moon",
        "setting": "field",
        "error": None,
    }
    before = {"ours_before": [0.7, 0.8, 0.9], "theirs_before": [0.6, 0.8, 0.7]}
    after = {
        "ours_after": 0.9,
        "theirs_after": [0.8, 0.9, 1.0],
        "ours_s": [1.0, 2.0, 6.0],
        "theirs_s": [8.0, 1.0, 20.0],
    }
    (row,) = parity.summarised(pd.DataFrame({**names, **before, **after}), {"moon": ""}).to_dict(
        "records"
    )
    assert row["seeds"] == 3
    assert (row["ours_before"], row["theirs_before"], row["before_less_theirs"]) == pytest.approx(
        (0.8, 0.7, 0.1)
    )
    assert (
        row["std_ours_before"],
        row["std_theirs_after"],
        row["after_less_theirs"],
    ) == pytest.approx((0.1, 0.1, 0.0))
    assert (row["ours_s"], row["theirs_s"], row["faster_by"]) == (2.0, 8.0, 4.0)


def test_the_factor_is_what_covers_the_other_graphs():
    """By hand: three graphs, whose mean differences are 0, 0 and 3, with variances 1, 4 and 1."""
    differences = {0: (-1.0, 0.0, 1.0), 1: (-2.0, 0.0, 2.0), 2: (2.0, 3.0, 4.0)}
    rows = [
        {"kind": "homophilous", "split": "20/40/40", "graph": graph, "fedavg": 0.0}
        | dict.fromkeys(("fedper", "local", "fedavg_oracle"), value)
        for graph, values in differences.items()
        for value in values
    ]
    found = correction.intervals(pd.DataFrame(rows), 3)
    local = found[found["method"] == "local"]
    # From the others' mean: 0 − 1.5, 0 − 1.5, 3 − 0.
    assert local["error"].tolist() == pytest.approx([-1.5, -1.5, 3.0])
    assert local["within"].tolist() == pytest.approx([2.0] * 3)
    assert local["between"].tolist() == pytest.approx([3 - 2 / 3] * 3)
    quantile = stats.t.ppf(0.975, 2)
    for (error, needed), spread in zip(
        local[["error", "needed"]].to_numpy(), (1.0, 2.0, 1.0), strict=True
    ):
        reach = quantile * spread * (1 / 3 + needed) ** 0.5
        assert reach >= abs(error) * (1 - 1e-9)
        assert needed == 0 or reach == pytest.approx(abs(error))
    assert correction.coverage(local, 0.0) == pytest.approx(2 / 3)
    assert correction.coverage(local, 0.2) == 1
    assert correction.coverage(local, 0.1) == pytest.approx(2 / 3)


def test_a_seed_is_measured_once(tmp_path):
    asked = []

    def measured(seed):
        asked.append(seed)
        return {
            f"{who}_{what}": 0.5 for who in ("ours", "theirs") for what in ("before", "after", "s")
        }

    keys = {
        "dataset": "cora",
        "features": "raw",
        "method": "moon",
        "ours": "moon",
        "setting": "field",
    }
    for seeds in ([0], [0, 1]):
        todo = [
            ({**keys, "seed": seed}, lambda s=seed: measured(s) | {"error": None}) for seed in seeds
        ]
        parity.measure_once(tmp_path / "found.csv", todo, {"moon": "why"}, 1)
    assert asked == [0, 1]
    (row,) = pd.read_csv(tmp_path / "found.csv").to_dict("records")
    assert (row["seeds"], row["note"]) == (2, "why")


def test_accuracy_of_another_code_is_of_all_nodes_at_the_round_best_on_validation():
    graphs = [
        SimpleNamespace(val_mask=np.ones(1, bool), test_mask=np.ones(3, bool)),
        SimpleNamespace(val_mask=np.ones(4, bool), test_mask=np.ones(1, bool)),
    ]
    # The first client, with one node for validation, has its best round when the other has not.
    scores = np.array([[[1.0, 1.0], [0.5, 1.0]], [[0.0, 1 / 3], [1.0, 0.0]]])
    assert authors.best(scores, graphs) == pytest.approx(1 / 4)


def test_codes_whose_modules_have_the_same_names_are_kept_apart(tmp_path):
    found = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        (folder / "settings_of_code.py").write_text(f"NAME = {folder.name!r}")
        with authors.imported_from(folder):
            found.append(importlib.import_module("settings_of_code").NAME)
            assert torch.ones(1).cuda("anywhere").device.type == "cpu"
    assert found == ["one", "two"]
    assert "settings_of_code" not in sys.modules
