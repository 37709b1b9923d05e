"""The stage ``audit`` from the command line."""

import json
from pathlib import Path

import pandas as pd
import pytest

from feddep.__main__ import main
from feddep.audit import attack_models, membership
from feddep.config.loading import validate
from feddep.datasets.synthetic import planted_partition
from feddep.experiment import keys, plan
from feddep.graph.partition import louvain
from feddep.graph.split import random_split
from feddep.utils.files import write_json


@pytest.fixture
def flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A run of FedAvg on a made-up graph."""
    monkeypatch.setattr(membership, "BOOTSTRAPS", 20)
    monkeypatch.setattr(attack_models, "MODELS", {"logistic": attack_models.MODELS["logistic"]})
    tiny = {"synthetic": {"nodes": 180, "communities": 12, "seed": 0}}
    setting = {"rounds": 1, "batch_size": 16, "hidden_channels": 16, "fanout": 3}
    raw = {"device": "cpu", "datasets": {"tiny": tiny}, "clients": [3], "seeds": [0]}
    raw |= {"settings": {"quick": setting}, "methods": {"fedavg": {}}}
    write_json(tmp_path / "config.yaml", raw)  # JSON is YAML
    config = validate(raw)
    run = plan.Run("quick", "tiny", 3, "fedavg", 0)
    graph = planted_partition(180, 4, 12, 64, 6.0, 1.0, 8, 0.8, 0)
    assert keys.specification(config, run)["setting"]["rounds"] == 1
    graph.save(tmp_path / "graph.safetensors", keys.graph_key(config, "tiny"))
    random_split(180, config["split"], 0).save(tmp_path / "split.safetensors", keys.split_key(config, "tiny", 0))
    partition_key = keys.partition_key(config, plan.PartitionSpec("tiny", 3, 0))
    louvain(graph, 3, 0).save(tmp_path / "partition.safetensors", partition_key)
    named = {"config": "config.yaml", "graph": "graph.safetensors", "split": "split.safetensors"}
    files = [text for name, file in named.items() for text in (f"--{name}", str(tmp_path / file))]
    return ["audit", *files, "--dataset", "tiny", "--method", "fedavg", "--setting", "quick", "--seed", "0"]


def test_a_part_is_a_table_with_its_provenance(flags, tmp_path):
    output = tmp_path / "found.csv"
    partition = ["--clients", "3", "--partition", str(tmp_path / "partition.safetensors")]
    assert main([*flags, *partition, "--part", "membership", "--output", str(output)]) == 0
    table = pd.read_csv(output)
    assert table["method"].tolist() == ["fedavg", "fedavg"]
    assert table["leaves"].tolist() == ["model updates", membership.PLACEBO]
    assert 0.5 < table["auc"][0] <= 1
    facts = json.loads(output.with_suffix(".json").read_text())
    assert facts["specification"]["method"] == {"name": "fedavg"}
    assert facts["provenance"]["packages"]["torch"]


def test_what_cannot_be_done_is_one_sentence(flags, tmp_path, capsys):
    output = tmp_path / "found.csv"
    assert main([*flags, "--part", "membership", "--output", str(output)]) == 1
    assert capsys.readouterr().err.startswith(
        "feddep audit: fedavg works on the subgraphs of clients, and the number of clients is missing"
    )
    partition = ["--clients", "3", "--partition", str(tmp_path / "partition.safetensors")]
    assert main([*flags, *partition, "--part", "canaries", "--output", str(output)]) == 1
    assert "use --method feddep_wo_nfdp" in capsys.readouterr().err
    assert main([*flags, *partition, "--part", "report", "--output", str(tmp_path)]) == 1
    assert "none of the findings is of the part membership" in capsys.readouterr().err
    assert not output.exists()
