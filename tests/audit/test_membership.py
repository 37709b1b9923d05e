"""Edge membership inference on whole runs, and the stage and the report around it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_task import task_of
from feddep.utils.checksum_lists import write_list

from feddep.audit import AuditError, attack_models, audit_report, membership
from feddep.audit.audit_report import ClaimedGuarantees
from feddep.audit.pairs import matched_pairs
from feddep.audit.reconstruction import KNOWLEDGE
from feddep.methods import registry

SMALL = {"embedding": 8, "pretraining_epochs": 1, "generator_epochs": 2, "fused": "authors"}
NEIGHGEN = {"embedding": 8, "generator_width": 8, "generator_local_epochs": 1, "generator_federated_epochs": 2}
LEAVES = {
    "local": {"nothing"},
    "fedavg": {"model updates"},
    "fedgsl": {"model updates", "noised embeddings of all nodes"},
    "fedgraph": {"model updates", "embeddings of border nodes"},
    "fedsage_plus": {
        *("model updates", "embeddings in requests to other clients", "gradients returned to other clients"),
    },
    "feddep": {"model updates", "prototypes, encoder known"},
    "feddep_wo_proto": {"model updates", "gradients returned to other clients"},
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "BOOTSTRAPS", 20)
    monkeypatch.setattr(attack_models, "MODELS", {"logistic": attack_models.MODELS["logistic"]})


def attacked(name: str, clients: int = 3, **options: Any) -> list[dict[str, Any]]:
    """Rows of the attack on a method after one round."""
    method = registry.find(name)
    return membership.measure(method, task_of(clients, rounds=1), method.parameters(**options))


@pytest.mark.parametrize("name", ["local", "fedgraph", "fedsage_plus", "feddep", "feddep_wo_proto"])
def test_a_row_for_everything_that_leaves(name):
    options = SMALL if name.startswith("feddep") else NEIGHGEN if name == "fedsage_plus" else {}
    rows = attacked(name, **options)
    assert {row["leaves"] for row in rows} == LEAVES[name]
    for row in rows:
        assert 0 <= row["coverage"] <= 1
        assert row["auc_low"] <= row["auc"] <= row["auc_high"]
        assert row["gain_auc"] == pytest.approx(row["auc"] - row["baseline_auc"])
        if not row["coverage"]:
            assert row["gain_auc"] == 0


class _Oracle:
    """Knows which pairs are edges; or, turned off, draws at random."""

    def __init__(self, honest: bool) -> None:
        self._rng, self._honest = np.random.default_rng(0), honest

    def receive(self, message: object) -> None:
        """Nothing is needed."""

    def features(self, pairs: object) -> np.ndarray:
        truth = pairs.is_edge.astype(float)  # type: ignore[attr-defined]
        return (truth if self._honest else self._rng.permutation(truth))[:, None]


def test_a_message_that_tells_all_and_one_that_tells_nothing():
    task = task_of(rounds=1)
    pairs = [matched_pairs(graph, np.random.default_rng(i)) for i, (graph, _) in enumerate(task.subgraphs())]
    channels = [membership.Channel(str(honest), [_Oracle(honest) for _ in pairs]) for honest in (True, False)]
    told, nothing = membership.attack(task, pairs, channels)
    assert told["auc"] > 0.999
    assert told["tpr"] > 0.99
    assert told["gain_auc_low"] > 0.2
    assert abs(nothing["gain_auc"]) < 0.05
    for column in ("baseline_auc", "baseline_auc_low", "baseline_auc_high"):
        assert nothing[column] == told[column]


def test_same_run_same_numbers():
    assert attacked("fedavg") == attacked("fedavg")


def test_what_cannot_be_attacked_is_named():
    with pytest.raises(AuditError, match="the method global has no clients"):
        attacked("global")
    with pytest.raises(AuditError, match="there are 2 clients"):
        attacked("fedavg", clients=2)


@pytest.mark.slow
def test_claimed_guarantees_are_of_what_leaves():
    claims = ClaimedGuarantees(task_of(rounds=50), {"feddep_wo_nfdp": 2.0})
    assert claims.of("fedavg", "model updates") == claims.of("feddep", "model updates")
    assert "in 100 times, whatever ε" in claims.of("fedavg", "model updates")
    assert claims.of("feddep_wo_nfdp", "model updates").startswith("none as a method; training alone, σ = 2: ε = ")
    assert claims.of("feddep_wo_nfdp", "model updates").endswith("per instance")
    assert claims.of("fedavg", membership.PLACEBO).startswith("a control")
    assert claims.of("fedsage_plus", "gradients returned to other clients").startswith("edges: all, (0, 0)")
    assert claims.of("fedgraph", "embeddings of border nodes").startswith("none")


def test_an_attack_gains_nothing_on_a_target_that_trained_on_other_edges():
    true, placebo = (rows := attacked("fedavg"))
    assert [row["leaves"] for row in rows] == ["model updates", membership.PLACEBO]
    assert placebo["baseline_auc"] == true["baseline_auc"]
    assert placebo["gain_auc"] < true["gain_auc"]


def test_the_placebo_changes_the_edges_of_the_target_alone():
    task = task_of(rounds=1)
    other = membership.rewired(task, 1)
    for client, ((graph, split), (now, same)) in enumerate(zip(task.subgraphs(), other.subgraphs(), strict=True)):
        assert (same.train == split.train).all()
        assert (now.features != graph.features).nnz == 0
        edges, replaced = ({tuple(edge) for edge in each.edges().tolist()} for each in (graph, now))
        if client != 1:
            assert edges == replaced
            continue
        assert not edges & replaced
        assert 0.8 * len(edges) < len(replaced) <= len(edges)
        assert (now.degrees <= graph.degrees).all()
        counts = [np.bincount(graph.labels[each.edges()].sum(axis=1)) for each in (graph, now)]
        assert np.abs(counts[0] - counts[1]).sum() <= len(edges) - len(replaced) + 1
    across = [{tuple(edge) for edge in each.graph.edges().tolist()} for each in (task, other)]
    clients = task.partition.client
    assert all(clients[u] == clients[v] == 1 for u, v in across[0] ^ across[1])


def findings(directory: Path) -> list[Path]:
    """Tables of all four parts, as the stage writes them."""
    row = attacked("fedavg")[0]
    canary = {"releases": "an update", "degree": 3, "runs": 8, "promised_epsilon": 1.0, "promised_delta": 1e-5, "promise": "x"}
    canary |= {"low": 0.5, "value": float("inf"), "high": float("inf"), "delta": 1e-5, "confidence": 0.95, "likely": 0.5}
    canary |= {"unlikely": 0.0, "least_delta": 0.1, "trials": 4}
    watched = {**{name: canary[name] for name in ("promised_epsilon", "promised_delta", "promise", "low", "delta")}, "runs": 2}
    watched |= {"releases": "DP-SGD", "degree": 0, "sigma": 2.0, "steps": 7, "canaries": 8, "guesses": 6, "correct": 5}
    watched |= {"attainable": 0.7, "most": 1.25}
    rows = {"property": "density", "leaves": "an update", "clients": 9, "auc": 0.5, "auc_low": 0.4, "auc_high": 0.6, "model": "m"}
    rebuilt = [
        {
            "knowledge": knowledge,
            "prototypes": count,
            "every_node": count == 9,
            "client": 0,
            "nodes": 9,
            "error": 0.5,
            "match": 0.2,
        }
        | {"chance": 1 / count}
        for knowledge in KNOWLEDGE
        for count in (3, 9)
    ]
    tables = {"one": [{"method": "fedavg", **row}], "two": [canary, watched], "three": [rows], "four": rebuilt}
    for name, table in tables.items():
        pd.DataFrame(table).to_csv(directory / f"{name}.csv", index=False)
        (directory / f"{name}.json").write_text(json.dumps({"run": name}))
        write_list(directory / f"{name}.sha256", [directory / f"{name}.csv", directory / f"{name}.json"])
    return [directory / f"{name}.csv" for name in tables]


@pytest.mark.slow
def test_the_report_puts_guarantee_above_attack(tmp_path):
    files = findings(tmp_path)
    audit_report.write(task_of(rounds=1), {"feddep_wo_nfdp": 2.0}, files, "A title", tmp_path)
    text = (tmp_path / "tables" / "audit.md").read_text()
    assert "A title" in text
    assert "| FedAvg" in text
    assert "whatever ε" in text
    assert "ε ≥" in text
    assert "every node" in text
    assert re.search(r"\| 2 +\| 2 +\| 7 +\| 8 +\| ε = 1, δ = 1e-05 \(x\) +\| 5 of 6 +\| 0.50 +\| 0.70 +\| 1.25", text)
    assert (tmp_path / "figures" / "reconstruction.png").read_bytes()[:4] == b"\x89PNG"
    assert set(json.loads((tmp_path / "tables" / "audit.json").read_text())) == {
        *("membership/one", "canaries/two", "properties/three", "reconstruction/four")
    }
    with pytest.raises(AuditError, match="none of the findings is of the part reconstruction"):
        audit_report.write(task_of(rounds=1), {}, files[:-1], "A title", tmp_path)
