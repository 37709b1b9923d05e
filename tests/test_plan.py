"""The plan: which runs there are, and what their keys depend on."""

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest

from feddep import frameworks, plan, provenance
from feddep.config import validate
from feddep.plan import Cut, Run

RAW: dict[str, Any] = {
    "datasets": {"cora": {}, "tiny": {"synthetic": {}}},
    "clients": [3, 5],
    "seeds": [0, 1],
    "settings": {"quick": {}, "slow": {"rounds": 99}},
    "frameworks": {"global": {}, "fedavg": {}},
}
FEDAVG = Run("quick", "cora", 5, "fedavg", 0)
GLOBAL = Run("quick", "cora", None, "global", 0)
MADE_UP = Run("quick", "tiny", 3, "fedavg", 0)


@pytest.fixture
def config() -> dict[str, Any]:
    return validate(RAW)


def altered(config: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    other = copy.deepcopy(config)
    *parents, last = path.split(".")
    place = other
    for parent in parents:
        place = place[parent]
    assert last in place, path
    place[last] = value
    return other


def test_paths():
    assert FEDAVG.path == "quick/cora/m5/fedavg/seed0"
    assert GLOBAL.path == "quick/cora/whole/global/seed0"
    assert Cut("cora", 5, 0).path == "cora/m5/seed0"


def test_every_combination_runs_once(config: dict[str, Any]):
    runs = plan.runs(config)
    assert len(set(runs)) == len(runs) == len({run.path for run in runs})
    # 2 settings, 2 datasets, 2 seeds; global once, fedavg for each of 2 numbers of clients
    assert len(runs) == 2 * 2 * 2 * (1 + 2)
    assert {run.clients for run in runs if run.framework == "global"} == {None}
    assert {run.clients for run in runs if run.framework == "fedavg"} == {3, 5}


def test_partitions_are_those_that_a_run_needs(config: dict[str, Any]):
    assert set(plan.cuts(config)) == {Cut(name, m, seed) for name in ("cora", "tiny") for m in (3, 5) for seed in (0, 1)}
    assert len(plan.cuts(config)) == 8
    assert plan.cuts({**config, "frameworks": {"global": {}}}) == []


def test_keys_are_distinct(config: dict[str, Any]):
    runs = plan.runs(config)
    assert len({plan.key(config, run) for run in runs}) == len(runs)
    cuts = plan.cuts(config)
    assert len({plan.partition_key(config, cut) for cut in cuts}) == len(cuts)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("settings.quick.learning_rate", 0.2),
        ("settings.quick.dropout", 0.0),
        ("split.val", 0.1),
        ("partition.delta", 10),
        ("datasets.cora.features", "row"),
    ],
)
def test_what_changes_a_number_changes_the_key(config: dict[str, Any], path: str, value: Any):
    assert plan.key(altered(config, path, value), FEDAVG) != plan.key(config, FEDAVG)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("device", "cuda"),
        ("threads", 8),
        ("output", "elsewhere"),
        ("records.use", False),
        ("data.mirror", "/mirror"),
        ("seeds", [0, 1, 2]),
        ("clients", [5]),
        ("settings.slow.rounds", 3),
        ("datasets.tiny.features", "row"),
    ],
)
def test_what_does_not_change_a_number_leaves_the_key(config: dict[str, Any], path: str, value: Any):
    assert plan.key(altered(config, path, value), FEDAVG) == plan.key(config, FEDAVG)


def test_the_partition_does_not_enter_where_there_is_none(config: dict[str, Any]):
    other = altered(config, "partition.delta", 10)
    assert plan.key(other, GLOBAL) == plan.key(config, GLOBAL)
    assert plan.specification(config, GLOBAL)["partition"] is None
    assert plan.specification(config, FEDAVG)["partition"] == {"clients": 5, "delta": 20}


def test_the_name_of_a_setting_is_only_a_name(config: dict[str, Any]):
    other = {**config, "settings": {"renamed": config["settings"]["quick"]}}
    renamed = Run("renamed", *(getattr(FEDAVG, name) for name in ("dataset", "clients", "framework", "seed")))
    assert plan.key(other, renamed) == plan.key(config, FEDAVG)


def test_the_options_of_a_synthetic_graph_enter(config: dict[str, Any]):
    other = altered(config, "datasets.tiny.synthetic.signal", 0.4)
    for key, what in ((plan.key, MADE_UP), (plan.graph_key, "tiny"), (plan.partition_key, Cut("tiny", 3, 0))):
        assert key(other, what) != key(config, what)
    assert plan.split_key(other, "tiny", 0) != plan.split_key(config, "tiny", 0)


def test_upstream_keys_depend_on_their_own_options_only(config: dict[str, Any]):
    cut = Cut("cora", 5, 0)
    delta, split = altered(config, "partition.delta", 10), altered(config, "split.val", 0.1)
    rate = altered(config, "settings.quick.learning_rate", 0.2)
    assert plan.partition_key(delta, cut) != plan.partition_key(config, cut)
    assert plan.partition_key(split, cut) == plan.partition_key(rate, cut) == plan.partition_key(config, cut)
    assert plan.split_key(split, "cora", 0) != plan.split_key(config, "cora", 0)
    assert plan.split_key(delta, "cora", 0) == plan.split_key(rate, "cora", 0) == plan.split_key(config, "cora", 0)
    for other in (delta, split, rate):
        assert plan.graph_key(other, "cora") == plan.graph_key(config, "cora")
        assert plan.findings_key(other, "tables") != plan.findings_key(config, "tables")
    assert plan.findings_key(config, "tables") != plan.findings_key(config, "figures")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's source, which the keys are computed from instead of the package itself."""
    root = tmp_path / "feddep"
    shutil.copytree(provenance.ROOT, root, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(plan, "code_fingerprint", lambda *modules: provenance.code_fingerprint(*modules, root=root))
    return root


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def test_a_copy_of_the_code_gives_the_same_keys(config: dict[str, Any], source: Path, monkeypatch: pytest.MonkeyPatch):
    elsewhere = plan.key(config, FEDAVG)
    monkeypatch.undo()
    assert elsewhere == plan.key(config, FEDAVG)


def test_a_new_framework_leaves_the_others_keys(config: dict[str, Any], source: Path):
    before = [plan.key(config, run) for run in (FEDAVG, GLOBAL)]
    (source / "frameworks" / "brand_new.py").write_text('TITLE = "New"\nPARTITIONED = True\n')
    append(source / "frameworks" / "local.py", "\nEXTRA = 1\n")
    assert [plan.key(config, run) for run in (FEDAVG, GLOBAL)] == before


def test_the_code_of_a_framework_enters_its_own_key_only(config: dict[str, Any], source: Path):
    fedavg, whole = plan.key(config, FEDAVG), plan.key(config, GLOBAL)
    append(source / "frameworks" / "fedavg.py", "\nEXTRA = 1\n")
    assert plan.key(config, FEDAVG) != fedavg
    assert plan.key(config, GLOBAL) == whole


@pytest.mark.parametrize("module", ["sampling.py", "nn/sage.py", "seeding.py", "splits.py", "partition.py", "stages/classify.py"])
def test_the_code_that_computes_enters(config: dict[str, Any], source: Path, module: str):
    before = plan.key(config, FEDAVG)
    append(source / module, "\nEXTRA = 1\n")
    assert plan.key(config, FEDAVG) != before


def test_words_for_the_reader_and_reporting_do_not_enter(config: dict[str, Any], source: Path):
    before = plan.key(config, FEDAVG)
    append(source / "sampling.py", '\n# a comment\n"""A note."""\n')
    append(source / "reporting" / "grid.py", "\nEXTRA = 1\n")
    append(source / "storage.py", "\nEXTRA = 1\n")
    assert plan.key(config, FEDAVG) == before


def test_the_generator_of_made_up_graphs_enters_only_their_keys(config: dict[str, Any], source: Path):
    made_up, real = plan.key(config, MADE_UP), plan.key(config, FEDAVG)
    append(source / "datasets" / "synthetic.py", "\nEXTRA = 1\n")
    assert plan.key(config, MADE_UP) != made_up
    assert plan.key(config, FEDAVG) == real


def test_a_published_number_enters_the_key_of_the_tables(config: dict[str, Any], source: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plan, "ROOT", source)
    before = plan.findings_key(config, "tables")
    append(next((source / "reporting").rglob("accuracy.csv")), "x\n")
    assert plan.findings_key(config, "tables") != before


def test_every_framework_can_be_planned():
    config = validate({**RAW, "frameworks": {name: {} for name in frameworks.available()}})
    assert {run.framework for run in plan.runs(config)} == set(frameworks.available())


def test_rows_are_the_frameworks_of_the_main_table():
    raw = {**RAW, "frameworks": {"fedavg": {}, "feddep": {"prototypes": 4}}, "rows": ["fedavg"]}
    study = {"kind": "sweep", "runs": [{"frameworks": {"feddep": {"prototypes": [3, 4]}}}, {"seeds": [9]}]}
    config = validate({**raw, "studies": {"c": study}})
    assert {run.framework for run in plan.runs(config)} == {"fedavg"}
    assert {run.framework for run in plan.study_runs(config, "c")} == {"feddep,prototypes=3", "feddep", "fedavg"}
    assert {run.framework for run in plan.runs(validate({**raw, "rows": None}))} == {"fedavg", "feddep"}


def test_each_setting_may_have_rows_of_its_own():
    """A study is of the first setting where it names none, so that no table mixes settings unless it is asked to."""
    study = [{}, {"settings": {"slow": {"hidden": [8, 16]}}}, {"settings": {"slow": {}}, "frameworks": {"local": {}}}]
    raw = {**RAW, "frameworks": {"global": {}, "local": {}, "fedavg": {}}, "studies": {"c": {"kind": "sweep", "runs": study}}}
    config = validate({**raw, "rows": {"quick": ["fedavg"], "slow": ["fedavg", "global"]}})

    def rows(runs: list[Run]) -> list[tuple[str, str]]:
        return list(dict.fromkeys((run.setting, run.framework) for run in runs))

    assert rows(plan.runs(config)) == [("quick", "fedavg"), ("slow", "fedavg"), ("slow", "global")]
    assert rows(plan.study_runs(config, "c")) == [
        ("quick", "fedavg"),
        *((f"slow,hidden={width}", framework) for width in (8, 16) for framework in ("fedavg", "global")),
        ("slow", "local"),
    ]
    other = validate({**raw, "rows": {"quick": ["fedavg"]}, "studies": {}})
    assert rows(plan.all_runs(other)) == [("quick", "fedavg")]
