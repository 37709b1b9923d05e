"""The table of guarantees, from the stage and from the rule."""

import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from feddep.stages.privacy_table import noises

from feddep.__main__ import main
from feddep.config.loading import MEASURED, validate
from feddep.experiment import keys, plan
from feddep.graph.graph import Graph
from feddep.graph.partition import Partition
from feddep.graph.split import random_split
from feddep.privacy.dpsgd_accounting import example_level
from feddep.utils.files import read_json, write_json
from graphs import random_graph

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIG: dict[str, Any] = {
    "device": "cpu",
    "datasets": {"mini": {"synthetic": {"nodes": 60}}},
    "clients": [2, 3],
    "seeds": [4, 5],
    "settings": {"quick": {"rounds": 2, "batch_size": 8, "fanout": 2}},
    "methods": {"fedavg": {}, "feddep_wo_nfdp": {"sigma": 3.0, "embedding": 8}},
}


def files(root: Path, dataset: str = "mini") -> list[str]:
    """The flags that name what the stage reads."""
    given = [
        f"--graph={dataset}={root}/out/graphs/{dataset}.safetensors",
        f"--split={dataset}={root}/out/splits/mini/seed4.safetensors",
    ]
    for clients in CONFIG["clients"]:
        path = plan.PartitionSpec("mini", clients, 4).path
        given.append(f"--partition={dataset}/m{clients}={root}/out/partitions/{path}.safetensors")
    return given


def prepared(root: Path) -> dict[str, Any]:
    """A configuration with what the stage reads."""
    config = {**CONFIG, "output": str(root / "out")}
    write_json(root / "config.json", config)
    checked = validate(config)
    random_graph(60, 140).save(root / "out/graphs/mini.safetensors", keys.graph_key(checked, "mini"))
    split = random_split(60, checked["split"], 4)
    split.save(root / "out/splits/mini/seed4.safetensors", keys.split_key(checked, "mini", 4))
    for clients in config["clients"]:
        partition, spec = Partition(pd.Series(range(60)).mod(clients).to_numpy(), clients), plan.PartitionSpec("mini", clients, 4)
        partition.save(root / "out/partitions" / f"{spec.path}.safetensors", keys.partition_key(checked, spec))
    return config


@pytest.mark.slow
def test_the_stage_writes_table_page_and_provenance(tmp_path: Path) -> None:
    config = validate(prepared(tmp_path))
    contents = []
    for folder in ("once", "again"):
        flags = ["--config", str(tmp_path / "config.json"), *files(tmp_path), "--output", str(tmp_path / folder)]
        assert main(["guarantees", *flags]) == 0
        contents.append([(tmp_path / folder / f"privacy.{form}").read_text() for form in ("csv", "md")])
    assert contents[0] == contents[1]
    text, page = contents[0]
    table = pd.read_csv(StringIO(text))
    assert table.groupby("clients").size().to_dict() == {2: 2 * 10, 3: 3 * 10}
    assert table["seed"].unique().tolist() == [4]
    noisy = table[table["mechanism"] == "dpsgd"]
    assert noisy[["method", "sigma"]].drop_duplicates().values.tolist() == [["feddep_wo_nfdp", 3.0]]
    first = noisy[(noisy["hidden"] == "example") & (noisy["accounting"] == "rdp")].iloc[0]
    assert first["epsilon"] == pytest.approx(example_level(3.0, first["rate"], first["times"], 1e-5).rdp, rel=1e-5)

    assert noisy.groupby(["hidden", "bound"], dropna=False).size().tolist() == [10, 10, 10]
    assert "| FedDEP w/o NFDP | 3 " in page
    assert "| simple: all, PLD |" in page
    assert "seed 4" in page
    assert "DP-SGD, setting quick: d = 2, L = 2, N = 2, B = 8" in page
    assert "nan" not in page
    provenance = read_json(tmp_path / "once" / "privacy.json")
    assert provenance["configuration"] == config
    assert provenance["seed"] == 4
    assert provenance["data"] == {"mini": keys.data_fingerprint(config, "mini")}
    assert {"numpy", "dp-accounting"} <= set(provenance["packages"])


def test_without_noise_there_is_no_table_of_it(tmp_path: Path) -> None:
    config = {**prepared(tmp_path), "methods": {"fedavg": {}}}
    write_json(tmp_path / "config.json", config)
    assert main(["guarantees", "--config", str(tmp_path / "config.json"), *files(tmp_path), "--output", str(tmp_path)]) == 0
    assert "DP-SGD, setting" not in (tmp_path / "privacy.md").read_text()


def test_which_methods_train_with_noise() -> None:
    def found(**methods: Any) -> dict[str, float]:
        return noises(validate({**CONFIG, "methods": methods}), "mini")

    assert found(fedavg={}, feddep={}, feddep_wo_nfdp={}) == {"feddep_wo_nfdp": 2.0}
    assert found(fedgnn={"sigma": 1.0}) == {"fedgnn": 1.0}
    assert found(fedgnn={"noised": "update"}) == {}


def test_another_graph_than_the_registry_knows_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {**prepared(tmp_path), "datasets": {"cora": {"features": "raw"}}}
    write_json(tmp_path / "config.json", config)
    Graph.load(tmp_path / "out/graphs/mini.safetensors").save(tmp_path / "out/graphs/cora.safetensors")
    stage = ["guarantees", "--config", str(tmp_path / "config.json"), *files(tmp_path, "cora")]
    assert main([*stage, "--output", str(tmp_path / "none")]) == 1
    assert "is not the cora that the registry knows" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.dag
def test_the_rule_asks_for_one_seed_and_no_training(tmp_path: Path) -> None:
    tables = [{"setting": "quick", "datasets": ["mini"], "methods": ["fedavg", "feddep_wo_nfdp"]}]
    config = {**CONFIG, "output": "out", "tables": tables, "studies": [], **{key: [] for key in MEASURED}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(REPOSITORY / "workflow" / "Snakefile"), "--dry-run"]
    arguments = ["out/tables/privacy.md", "--configfile", "config.yaml"]
    done = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = dict(line.split() for line in (done.stdout + done.stderr).partition("Job stats:")[2].splitlines()[3:8] if line)
    assert counts == {"partition": "2", "prepare": "1", "privacy": "1", "split": "1", "total": "5"}
