"""Edge membership inference on whole runs, and the page of the audit."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from small import case_of, of_run, page, task_of

from feddep.experiment.plan import Run
from feddep.methods import registry
from feddep.utils.errors import ConfigError
from studies.measuring import tables_of
from studies.privacy_audit import attack_models, membership
from studies.privacy_audit.claims import claimed
from studies.privacy_audit.pairs import matched_pairs
from studies.privacy_audit.reconstruction import KNOWLEDGE

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

    def receive(self, *message: object) -> None:
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


def test_what_cannot_be_attacked_is_named():
    with pytest.raises(ConfigError):
        attacked("global")
    with pytest.raises(ConfigError):
        attacked("fedavg", clients=2)


@pytest.mark.slow
def test_claimed_guarantees_are_of_what_leaves():
    task, noised = task_of(rounds=50), registry.find("feddep_wo_nfdp").parameters(sigma=2.0)
    of_sampling = claimed(task, "fedavg", None, "model updates")
    assert "in 100 times" in of_sampling
    assert claimed(task, "feddep_wo_nfdp", noised, "model updates") != of_sampling
    assert claimed(task, "feddep_wo_nfdp", noised, "prototypes, encoder known") != of_sampling


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


def test_a_case_is_attacked():
    case = dataclasses.replace(case_of("fedavg", task_of(rounds=1)), options={"repetitions": 2})
    (rows,) = tables_of("privacy_audit", case).values()
    assert [(row["method"], row["rounds"]) for row in rows] == [("fedavg", 1), ("fedavg", 1)]
    assert all(row["promise"] for row in rows)
    with pytest.raises(ConfigError):
        tables_of("privacy_audit", dataclasses.replace(case, options={"canary": ["fedavg"]}))


def test_the_page_puts_guarantee_above_attack():
    row = {**attacked("fedavg")[0], "promise": "none"}
    promised = {"promised_epsilon": 1.0, "promised_delta": 1e-5, "promise": "x", "low": 0.5, "delta": 1e-5, "confidence": 0.95}
    canary = {**promised, "releases": "an update", "degree": 3, "runs": 8, "value": float("inf"), "high": float("inf")}
    canary |= {"likely": 0.5, "unlikely": 0.0, "least_delta": 0.1, "trials": 4}
    watched = {**promised, "runs": 2, "releases": "DP-SGD", "degree": 0, "sigma": 2.0, "steps": 7, "canaries": 8, "guesses": 6}
    watched |= {"correct": 5, "attainable": 0.7, "most": 1.25}
    inferred = {"property": "density", "leaves": "an update", "clients": 9, "auc": 0.5, "auc_low": 0.4, "auc_high": 0.6}
    scores = {"client": 0, "nodes": 9, "error": 0.5, "match": 0.2}
    rebuilt = [
        {"knowledge": knowledge, "prototypes": count, "every_node": count == 9, **scores, "chance": 1 / count}
        for knowledge in KNOWLEDGE
        for count in (3, 9)
    ]
    of = of_run(Run("quick", "cora", 3, "fedavg", 0))
    tables = {"membership": [row], "canaries": [canary, watched], "properties": [inferred], "reconstruction": rebuilt}
    made = page("privacy_audit", **{part: [{**of, **each} for each in rows] for part, rows in tables.items()})
    assert made["page.md"].count("ε = 1, δ = 1e-05 (x)") == 2
    assert "| 5 of 6 " in made["page.md"]
    assert made["table.csv"]["auc"].tolist() == [row["auc"]]
    assert len(made["canaries.csv"]) == 2
    assert len(made["reconstruction.csv"]) == 6
    assert set(made["figure"].axes[0].get_ylim()) >= {0.0}
