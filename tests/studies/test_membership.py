"""Edge membership inference on whole runs, and the page of the audit."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small import DGEN, NEIGHGEN, case_of, of_run, page, task_of

from feddep.methods import registry
from feddep.utils.errors import ConfigError
from studies.measuring import tables_of
from studies.privacy.privacy_audit import attack_models, membership
from studies.privacy.privacy_audit.canaries import sampling_row
from studies.privacy.privacy_audit.claims import claimed
from studies.privacy.privacy_audit.pairs import matched_pairs
from studies.privacy.privacy_audit.reconstruction import KNOWLEDGE

pytestmark = pytest.mark.slow

LEAVES = {
    "local": {"nothing"},
    "fedgraph": {"model updates", "embeddings of border nodes"},
    "fedsage_plus": {
        "model updates",
        "embeddings in requests to other clients",
        "gradients returned to other clients",
    },
    "feddep": {"model updates", "prototypes, encoder known"},
    "feddep_wo_proto": {"model updates", "gradients returned to other clients"},
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "BOOTSTRAPS", 20)
    monkeypatch.setattr(attack_models, "MODELS", {"logistic": attack_models.MODELS["logistic"]})


@pytest.mark.parametrize("name", LEAVES)
def test_a_row_for_everything_that_leaves(name):
    options = DGEN if name.startswith("feddep") else NEIGHGEN if name == "fedsage_plus" else {}
    method = registry.find(name)
    rows = membership.measure(method, task_of(rounds=1), method.parameters(**options))
    assert {row["leaves"] for row in rows} == LEAVES[name]
    for row in rows:
        assert row["auc_low"] <= row["auc"] <= row["auc_high"]
        assert row["gain_auc"] == pytest.approx(row["auc"] - row["baseline_auc"])
        assert 0 < row["coverage"] <= 1 or row["gain_auc"] == row["coverage"] == 0


def test_a_message_that_tells_all_and_one_that_tells_nothing():
    task = task_of(rounds=1)
    pairs = [
        matched_pairs(graph, np.random.default_rng(i))
        for i, (graph, _) in enumerate(task.subgraphs())
    ]
    rng = np.random.default_rng(0)
    features = (
        lambda of: of.is_edge[:, None] * 1.0,
        lambda of: rng.permutation(of.is_edge)[:, None] * 1.0,
    )
    channels: Any = [
        membership.Channel("message", [SimpleNamespace(features=tell)] * len(pairs))
        for tell in features
    ]
    told, nothing = membership.attack(task, pairs, channels)
    assert min(told["auc"], told["tpr"]) > 0.99
    assert told["gain_auc_low"] > 0.2
    assert abs(nothing["gain_auc"]) < 0.05
    assert all(
        nothing[f"baseline_auc{end}"] == told[f"baseline_auc{end}"] for end in ("", "_low", "_high")
    )


@pytest.mark.slow
def test_claimed_guarantees_are_of_what_leaves():
    task, noised = task_of(rounds=50), registry.find("feddep_wo_nfdp").parameters(sigma=2.0)
    of_sampling = claimed(task, "fedavg", None, "model updates")
    assert "in 100 times" in of_sampling
    assert claimed(task, "feddep_wo_nfdp", noised, "model updates") != of_sampling
    assert claimed(task, "feddep_wo_nfdp", noised, "prototypes, encoder known") != of_sampling


def test_the_control_changes_the_edges_of_the_target_alone():
    task, tasks = task_of(rounds=1), (task_of(rounds=1), membership.rewired(task_of(rounds=1), 1))
    assert (tasks[0].graph.features != tasks[1].graph.features).nnz == 0
    edges, replaced = ({tuple(edge) for edge in each.graph.edges().tolist()} for each in tasks)
    assert {task.partition.client[node] for edge in edges ^ replaced for node in edge} == {1}
    (graph, _), (now, _) = (each.subgraphs()[1] for each in tasks)
    inner, new = ({tuple(edge) for edge in each.edges().tolist()} for each in (graph, now))
    assert not inner & new
    assert 0.8 * len(inner) < len(new) <= len(inner)
    assert (now.degrees <= graph.degrees).all()
    counts = [np.bincount(graph.labels[each.edges()].sum(axis=1)) for each in (graph, now)]
    assert np.abs(counts[0] - counts[1]).sum() <= len(inner) - len(new) + 1


def test_an_attack_gains_nothing_on_a_target_that_trained_on_other_edges():
    (rows,) = tables_of("privacy_audit", case_of("fedavg", task_of(rounds=1))).values()
    true, control = rows
    assert [row["leaves"] for row in rows] == ["model updates", membership.CONTROL]
    assert control["baseline_auc"] == true["baseline_auc"]
    assert control["gain_auc"] < true["gain_auc"]
    assert all(row["promise"] and row["rounds"] == 1 for row in rows)
    for name, clients in (("global", None), ("fedavg", 2)):
        with pytest.raises(ConfigError):
            tables_of("privacy_audit", case_of(name, task_of(clients, rounds=1)))

    canary = {
        **sampling_row(3, 5, 0, 8),
        "promised_epsilon": 1.0,
        "promised_delta": 1e-5,
        "promise": "x",
    }
    watched = {
        **canary,
        "sigma": 2.0,
        "steps": 7,
        "canaries": 8,
        "guesses": 6,
        "correct": 5,
        "attainable": 0.7,
        "most": 1.25,
    }
    inferred = {
        "property": "x",
        "leaves": "x",
        "clients": 9,
        "auc": 0.5,
        "auc_low": 0.4,
        "auc_high": 0.6,
        "model": "x",
    }
    scores = {"client": 0, "nodes": 9, "error": 0.5, "match": 0.2}
    rebuilt = [
        {
            "knowledge": knowledge,
            "prototypes": count,
            "every_node": count == 9,
            **scores,
            "chance": 1 / count,
        }
        for knowledge in KNOWLEDGE
        for count in (3, 9)
    ]
    tables = {
        "membership": [true],
        "canaries": [canary, watched],
        "properties": [inferred],
        "reconstruction": rebuilt,
    }
    made = page(
        "privacy_audit",
        **{part: [{**of_run("fedavg"), **each} for each in rows] for part, rows in tables.items()},
    )
    assert made["table.csv"]["auc"].tolist() == [true["auc"]]
    assert (len(made["canaries.csv"]), len(made["reconstruction.csv"])) == (2, 6)
    assert made["properties.csv"]["clients"].tolist() == [9]  # that are attacked
