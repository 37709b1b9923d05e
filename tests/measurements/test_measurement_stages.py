"""The stages measure and measurement_table, from files to files."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small import SHARES, of_run

from feddep.cli import main
from feddep.config.loading import validate
from feddep.experiment import keys
from feddep.experiment.plan import PartitionSpec
from feddep.graph.partition import Partition
from feddep.graph.split import random_split
from feddep.measurements import MEASUREMENTS
from feddep.utils import seeding
from feddep.utils.errors import ConfigError
from feddep.utils.files import read_result, write_json
from graphs import random_graph

DGEN = {"prototypes": 3, "embedding": 4, "pretraining_epochs": 1, "generator_epochs": 1, "hidden_from": "all"}
NEIGHGEN = {"embedding": 4, "generator_width": 8, "generator_local_epochs": 1, "generator_federated_epochs": 1}
RAW: dict[str, Any] = {
    "records": {"use": False},
    "datasets": {"tiny": {"synthetic": {"nodes": 60, "communities": 6}}},
    "clients": [2],
    "seeds": [0],
    "settings": {"quick": {"rounds": 1, "batch_size": 16, "hidden_channels": 8}},
    "methods": {"fedavg": {}, "feddep": DGEN, "feddep_wo_proto": DGEN, "fedsage_plus": NEIGHGEN},
    "quality": [{"methods": {"feddep": {}}}],
    "neighbourhoods": [{"methods": {"fedsage_plus": {}}}],
    "degree_histograms": [{"methods": {"fedavg": {}}}],
}


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """The flags of the stage that name the run's files, for a made-up graph."""
    raw = {**RAW, "output": str(tmp_path / "results")}
    write_json(tmp_path / "config.json", raw)
    config = validate(raw)
    random_graph(60, 150, seed=1).save(tmp_path / "graph.safetensors", keys.graph_key(config, "tiny"))
    random_split(60, SHARES, 0).save(tmp_path / "split.safetensors", keys.split_key(config, "tiny", 0))
    partition = Partition(seeding.generator(0, "owners").permutation(60) % 2, 2)
    partition.save(tmp_path / "partition.safetensors", keys.partition_key(config, PartitionSpec("tiny", 2, 0)))
    named = [f"--{name}={tmp_path / name}.safetensors" for name in ("graph", "split", "partition")]
    return ["--dataset=tiny", "--setting=quick", "--clients=2", "--seed=0", f"--config={tmp_path / 'config.json'}", *named]


@pytest.mark.parametrize("name", ["quality", "neighbourhoods", "degree_histograms", "overhead"])
def test_from_runs_to_tables(name: str, flags: list[str], tmp_path: Path) -> None:
    measurement = MEASUREMENTS[name]
    config = validate({**RAW, "output": str(tmp_path / "results")})
    runs = measurement.runs(config)
    for run in runs:
        for directory in ("results", "again"):
            output = tmp_path / directory / measurement.file(run)
            command = ["measure", f"--measurement={name}", f"--method={run.method}", *flags, f"--output={output}"]
            assert main(command) == 0
        assert (tmp_path / "again" / measurement.file(run)).read_bytes() == output.with_name("seed0.json").read_bytes()
        for rows in read_result(tmp_path / "results" / measurement.file(run))["tables"].values():
            assert all(row.items() >= of_run(run).items() for row in rows)
    table = ["measurement_table", f"--measurement={name}", f"--config={tmp_path / 'config.json'}"]
    given = [f"--input={tmp_path / 'results' / measurement.file(run)}" for run in runs]
    assert main([*table, f"--output={tmp_path / 'found'}"]) == 0
    assert main([*table, *given, f"--output={tmp_path / 'given'}"]) == 0
    for file in measurement.files:
        assert (tmp_path / "found" / file).read_bytes() == (tmp_path / "given" / file).read_bytes()


def test_numbers_have_six_digits(flags: list[str], tmp_path: Path) -> None:
    output = tmp_path / "quality.json"
    assert main(["measure", "--measurement=quality", "--method=feddep", *flags, f"--output={output}"]) == 0
    numbers = [value for row in read_result(output)["tables"]["quality"] for value in row.values() if isinstance(value, float)]
    assert numbers
    assert numbers == [float(f"{value:.6g}") for value in numbers]


def test_a_method_without_generators_is_a_clear_error(flags: list[str], tmp_path: Path, capsys) -> None:
    assert main(["measure", "--measurement=quality", "--method=fedavg", *flags, f"--output={tmp_path / 'out.json'}"]) == 1
    assert "the method fedavg has no step prototypes, so there is nothing to measure" in capsys.readouterr().err


def test_a_run_that_is_not_measured_is_named(flags: list[str], tmp_path: Path, capsys) -> None:
    table = ["measurement_table", f"--config={tmp_path / 'config.json'}", f"--output={tmp_path}"]
    assert main([*table, "--measurement=quality"]) == 1
    assert "quick/tiny/m2/feddep/seed0 is not measured yet" in capsys.readouterr().err
    assert main([*table, "--measurement=label_distributions"]) == 1
    assert "key label_distributions names no run" in capsys.readouterr().err


def test_the_runs_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"quality\.0\.methods: .*prototype_number"):
        validate({**RAW, "quality": [{"methods": {"feddep": {"prototype_number": 3}}}]})


def test_the_table_of_measurements_is_cheap() -> None:
    code = (
        "import sys, json, feddep.measurements\n"
        "print(json.dumps([name for name in ('torch', 'pandas', 'matplotlib', 'scipy') if name in sys.modules]))"
    )
    assert json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) == []


def test_a_job_that_trains_does_not_load_the_compiler(flags: list[str], tmp_path: Path) -> None:
    command = ["measure", "--measurement=quality", "--method=feddep", *flags, f"--output={tmp_path / 'out.json'}"]
    code = f"import sys, feddep.cli\nassert not feddep.cli.main({command})\nprint('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.endswith("False\n")


def test_a_measurement_under_a_foreign_key_is_refused(flags: list[str], tmp_path: Path, capsys) -> None:
    command = ["measure", "--measurement=quality", "--method=feddep", f"--key={'0' * 64}", *flags]
    assert main([*command, f"--output={tmp_path / 'out.json'}"]) == 1
    assert "but 000000000000… was planned" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()
