"""Edge membership inference on whole runs, and the stage and the report around it."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from feddep import frameworks
from feddep.audit import AuditError, attacks, membership, report
from feddep.audit.pairs import matched
from feddep.audit.promises import Promises
from feddep.datasets.synthetic import planted_partition
from feddep.partition import louvain
from feddep.problem import Problem
from feddep.settings import Setting
from feddep.splits import random_split

SMALL = {"embedding": 8, "pretraining_epochs": 1, "generator_epochs": 2, "fused": "authors"}
NEIGHGEN = {"embedding": 8, "generator_width": 8, "local_epochs": 1, "federated_epochs": 2}
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
    monkeypatch.setattr(attacks, "MODELS", {"logistic": attacks.MODELS["logistic"]})


def problem_of(clients: int = 3, rounds: int = 1) -> Problem:
    graph = planted_partition(180, 4, 12, 64, 6.0, 1.0, 8, 0.8, 0)
    split = random_split(graph.num_nodes, {"train": 0.6, "val": 0.2, "test": 0.2}, 0)
    setting = Setting("sgd", 0.5, 0.0, 16, 3, rounds, 1, 2, 16, 0.2)
    return Problem("audited", graph, split, louvain(graph, clients, 0), setting, 0)


@pytest.mark.parametrize("name", ["local", "fedgraph", "fedsage_plus", "feddep", "feddep_wo_proto"])
def test_a_line_for_everything_that_leaves(name):
    options = SMALL if name.startswith("feddep") else NEIGHGEN if name == "fedsage_plus" else {}
    lines = membership.measure(name, problem_of(), frameworks.load(name).Parameters(**options))
    assert {line.leaves for line in lines} == LEAVES[name]
    for line in lines:
        assert 0 <= line.coverage <= 1
        assert line.auc.low <= line.auc.value <= line.auc.high
        assert line.gain_auc.value == pytest.approx(line.auc.value - line.baseline_auc.value)
        if not line.coverage:
            assert line.gain_auc.value == 0


class _Oracle:
    """Knows which pairs are edges; or, turned off, draws at random."""

    def __init__(self, honest: bool) -> None:
        self._rng, self._honest = np.random.default_rng(0), honest

    def hear(self, message: object) -> None:
        """Nothing is needed."""

    def facts(self, pairs: object) -> np.ndarray:
        truth = pairs.is_edge.astype(float)  # type: ignore[attr-defined]
        return (truth if self._honest else self._rng.permutation(truth))[:, None]


def test_a_message_that_tells_all_and_one_that_tells_nothing():
    problem = problem_of()
    pairs = [matched(graph, np.random.default_rng(i)) for i, (graph, _) in enumerate(problem.subgraphs())]
    channels = [membership.Channel(str(honest), [_Oracle(honest) for _ in pairs]) for honest in (True, False)]
    told, nothing = membership.attack(problem, pairs, channels)
    assert told.auc.value > 0.999
    assert told.tpr.value > 0.99
    assert told.gain_auc.low > 0.2
    assert abs(nothing.gain_auc.value) < 0.05
    assert nothing.baseline_auc == told.baseline_auc


def test_same_run_same_numbers():
    first, again = (membership.measure("fedavg", problem_of(), frameworks.load("fedavg").Parameters()) for _ in range(2))
    assert first == again


def test_what_cannot_be_attacked_is_named():
    with pytest.raises(AuditError, match="the framework global has no clients"):
        membership.measure("global", problem_of(), frameworks.load("global").Parameters())
    with pytest.raises(AuditError, match="there are 2 clients"):
        membership.measure("fedavg", problem_of(2), frameworks.load("fedavg").Parameters())


def test_promises_are_of_what_leaves():
    promises = Promises(problem_of(rounds=50), {"feddep_wo_nfdp": 2.0})
    assert promises.of("fedavg", "model updates") == promises.of("feddep", "model updates")
    assert "in 100 times, whatever ε" in promises.of("fedavg", "model updates")
    assert promises.of("feddep_wo_nfdp", "model updates").startswith("DP-SGD, σ = 2: ε = ")
    assert promises.of("fedsage_plus", "gradients returned to other clients").startswith("edges: all, (0, 0)")
    assert promises.of("fedgraph", "embeddings of border nodes").startswith("none")


def findings(directory: Path) -> list[Path]:
    """Tables of all four parts, as the stage writes them."""
    line = membership.measure("fedavg", problem_of(), frameworks.load("fedavg").Parameters())[0]
    canary = {"releases": "an update", "degree": 3, "runs": 8, "promised_epsilon": 1.0, "promised_delta": 1e-5, "promise": "x"}
    canary |= {"low": 0.5, "value": float("inf"), "high": float("inf"), "delta": 1e-5, "confidence": 0.95, "likely": 0.5}
    canary |= {"unlikely": 0.0, "least_delta": 0.1, "trials": 4}
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
        for knowledge in report.reconstruction.KNOWLEDGE
        for count in (3, 9)
    ]
    tables = {"one": [{"framework": "fedavg", **line.as_dict()}], "two": [canary], "three": [rows], "four": rebuilt}
    for name, table in tables.items():
        pd.DataFrame(table).to_csv(directory / f"{name}.csv", index=False)
        (directory / f"{name}.json").write_text(json.dumps({"run": name}))
    return [directory / f"{name}.csv" for name in tables]


def test_the_report_puts_guarantee_above_attack(tmp_path):
    files = findings(tmp_path)
    report.write(problem_of(), {"feddep_wo_nfdp": 2.0}, files, "A title", tmp_path)
    text = (tmp_path / "tables" / "audit.md").read_text()
    assert "A title" in text
    assert "| FedAvg" in text
    assert "whatever ε" in text
    assert "ε ≥" in text
    assert "every node" in text
    assert (tmp_path / "figures" / "reconstruction.png").read_bytes()[:4] == b"\x89PNG"
    assert set(json.loads((tmp_path / "tables" / "audit.json").read_text())) == {
        *("membership/one", "canaries/two", "properties/three", "reconstruction/four")
    }
    with pytest.raises(AuditError, match="none of the findings is of the part reconstruction"):
        report.write(problem_of(), {}, files[:-1], "A title", tmp_path)
