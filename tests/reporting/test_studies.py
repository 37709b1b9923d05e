"""What all studies share: the table of their runs, the stage, the key, and that every kind keeps the interface."""

import dataclasses
import json
import re
import subprocess
import sys
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fabricated_studies import RAW, finished, study
from PIL import Image

from feddep.__main__ import main
from feddep.config.loading import validate
from feddep.experiment import keys, plan, records
from feddep.methods import registry
from feddep.reporting import studies, study_data
from feddep.reporting.comparisons import paired
from feddep.reporting.study_data import assemble, load, summarise, without
from feddep.utils.errors import ConfigError
from feddep.utils.files import read_json, write_json, write_result
from feddep.utils.parameters import Parameters

FILES = {"table.csv", "table.md", "figure.svg", "figure.png", "provenance.json", "study.sha256"}


@pytest.mark.parametrize("kind", studies.available())
def test_every_kind_keeps_the_interface(kind: str) -> None:
    module = studies.load("a", kind)
    assert isinstance(module.SHOWS, str)
    assert all(callable(getattr(module, name)) for name in ("tables", "markdown", "figure"))


def test_the_kinds_that_there_are() -> None:
    assert studies.available() == ["curves", "grid", "headroom", "paired", "privacy", "recovery", "sweep", "tradeoff", "tuned"]


def test_options_that_differ_are_columns() -> None:
    made = study(
        finished("fedavg", 0, 0.8),
        finished("feddep,prototypes=3,clustering=dec", 0, 0.8, dataset="cora,labelled=0.1"),
        finished("feddep,prototypes=15,clustering=dec", 0, 0.8, dataset="cora", setting="feddep,rounds=9", rounds=9),
        finished("feddep,clustering=dec", 0, 0.8, dataset="cora"),
    )
    assert made.options == {"rounds": "setting", "labelled": "dataset", "prototypes": "method"}
    # The entry has no number of prototypes, as its default is that of the classes.
    assert made.runs["prototypes"].tolist() == [None, 3, 15, "null"]
    assert made.runs["labelled"].tolist() == ["null", 0.1, "null", "null"]
    assert made.runs["rounds"].tolist() == [4, 4, 9, 4]
    assert made.values("rounds") == [4, 9]
    assert made.values("prototypes") == [3, 15, "null"]  # as they come
    assert made.points["method"].tolist() == ["fedavg", *["feddep,clustering=dec"] * 3]
    assert set(made.points["dataset"]) == {"cora"}
    assert set(made.points["setting"]) == {"feddep"}


def test_options_of_the_same_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method's option may be called like a setting's, or like a measurement."""
    found = registry.methods()

    class Options(Parameters):
        layers: int = 1
        bytes: int = 0

    monkeypatch.setattr(registry, "find", lambda name: dataclasses.replace(found[name], parameters=Options))
    made = study(
        finished("fedavg,layers=3", 0, 0.8, setting="feddep,layers=1"),
        finished("fedavg,bytes=7", 0, 0.8, setting="feddep"),
    )
    assert made.options == {"setting.layers": "setting", "method.layers": "method", "method.bytes": "method"}
    assert made.runs[list(made.options)].values.tolist() == [[1, 3, 0], [2, 1, 7]]
    assert made.runs["bytes"].tolist() == [5000, 5000]


def test_a_name_without_an_option() -> None:
    assert without("feddep,depth=1,prototypes=3", ["depth"]) == "feddep,prototypes=3"


def test_a_parameter_may_have_a_value_for_each_dataset() -> None:
    config = validate({**RAW, "methods": {"feddep": {"embedding": {"cora": 128, "citeseer": 64}}}})
    runs = [finished(name, 0, 0.8, dataset=data) for name in ("feddep", "feddep,embedding=16") for data in ("cora", "citeseer")]
    assert assemble(config, "made_up", runs).runs["embedding"].tolist() == [128, 64, 16, 16]


def test_summary_over_seeds() -> None:
    runs = [finished("fedavg", seed, 0.80 + 0.01 * seed, seconds=seed, seconds_before={"a": 1.0, "b": 0.5}) for seed in range(3)]
    runs += [finished(f"feddep,prototypes={c}", 0, 0.9, clients=m) for c in (7, 3) for m in (10, 5)]
    table = summarise(study(*runs, finished("global", 0, 0.95, clients=None, dataset="citeseer")))
    assert table["dataset"].tolist() == ["cora"] * 5 + ["citeseer"]
    assert table["method"].tolist() == ["fedavg", *["feddep"] * 4, "global"]
    assert table["clients"].tolist() == [5, 5, 10, 5, 10, pd.NA]
    assert table["prototypes"].tolist()[1:5] == [3, 3, 7, 7]
    first = table.iloc[0]
    assert (first["seeds"], first["bytes"]) == (3, 5000)
    assert first[["mean", "std", "last_mean", "last_std"]].tolist() == pytest.approx([0.81, 0.01, 0.79, 0.01])
    assert first[["validation_mean", "seconds", "seconds_before"]].tolist() == pytest.approx([0.5, 1.0, 1.5])


def test_pairs_share_setting_dataset_clients_and_seed() -> None:
    ours = study(*(finished("feddep", seed, 0.9, clients=m) for seed in (0, 1) for m in (5, 10))).runs
    theirs = study(finished("fedavg", 0, 0.8), finished("fedavg", 1, 0.7, dataset="citeseer"), finished("fedavg", 2, 0.7)).runs
    assert paired(ours, theirs).to_dict("list") == {
        "setting": ["feddep"],
        "dataset": ["cora"],
        "clients": [5],
        "seed": [0],
        "difference": [pytest.approx(0.1)],
        "undertrained": [0.0],
    }
    whole = study(finished("global", 0, 1.0, clients=None)).runs
    assert paired(whole, ours)["clients"].tolist() == [5, 10]
    assert paired(ours, whole)["difference"].tolist() == pytest.approx([-0.1, -0.1])


def test_size_counts_runs_and_seeds() -> None:
    assert study(finished("fedavg", 0, 0.8), finished("fedavg", 2, 0.8)).size() == "2 runs, 2 seeds (0, 2)"
    mixed = study(*(finished("fedavg", seed, 0.8, dataset=name) for name in ("cora", "pubmed") for seed in (0, 2)))
    assert mixed.size() == "4 runs, 2 seeds (0, 2)"
    fewer = study(*mixed.finished, finished("fedavg", 1, 0.8, dataset="citeseer"))
    assert fewer.size() == "5 runs, 2 seeds (0, 2) on Cora and PubMed, 1 seed (1) on CiteSeer"


FEW: dict[str, Any] = {"datasets": {"cora": {}}, "clients": [5]}
BLOCKS: dict[str, list[dict[str, Any]]] = {
    "sweep": [{**FEW, "settings": {"feddep": {"fanout": [1, 5]}}, "methods": {"global": {}, "fedavg": {}}}],
    "curves": [FEW],
    "grid": [{**FEW, "methods": {"feddep": {"prototypes": [3, 5]}}}],
    "paired": [{**FEW, "methods": {"fedavg": {}, "global": {}}}],
    "privacy": [{**FEW, "settings": {"feddep": {"fanout": [1, 5]}}, "methods": {"fedavg": {}, "feddep_wo_nfdp": {}}}],
    "recovery": [{**FEW, "methods": {"fedavg": {}, "halo": {}, "feddep": {}}}],
    "headroom": [FEW, {**FEW, "settings": {"feddep": {"rounds": 20}}, "methods": {"fedavg": {}}}],
    "tradeoff": [{**FEW, "methods": {"vertical_mlp": {}, "gap": {"epsilon": [4.0, 8.0], "accountant": "holds"}}}],
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration with a study of each kind, and all their runs."""
    root = tmp_path_factory.mktemp("studies")
    kinds = [{"name": kind, "kind": kind, "runs": blocks} for kind, blocks in BLOCKS.items()]
    raw = {**RAW, "output": str(root / "results"), "studies": kinds}
    config = validate(raw)
    write_json(root / "config.json", raw)
    runs = list(dict.fromkeys(run for kind in BLOCKS for run in plan.study_runs(config, kind)))
    for number, run in enumerate(runs):
        rounds = keys.specification(config, run)["setting"]["rounds"]
        best = 0.7 + 0.001 * (7 * number % 13)
        given = {"dataset": run.dataset, "clients": run.clients, "setting": run.setting, "rounds": rounds, "validation": best}
        given |= {"own": best, "global_validation": best}
        history = [0.5 * (number + 1) for number in range(rounds)]
        one = finished(run.method, run.seed, best, **given, seconds_by_round=history, device="cpu")
        result = {**one.result, "specification": keys.specification(config, run)}
        content = {"key": keys.run_key(config, run), "result": result, "provenance": one.provenance}
        write_result(records.of_run(config, run).result, content)
    return root


def call(root: Path, study: str, folder: str, config: str = "config.json") -> tuple[int, Path]:
    output = root / folder
    return main(["study", "--config", str(root / config), "--study", study, "--output", str(output)]), output


@pytest.mark.slow
@pytest.mark.parametrize("kind", BLOCKS)
def test_the_stage_writes_every_kind_the_same_twice(root: Path, kind: str) -> None:
    contents = []
    for folder in ("once", "again"):
        status, output = call(root, kind, f"{kind}/{folder}")
        assert status == 0
        contents.append({path.name: path.read_bytes() for path in output.iterdir()})
    assert contents[0] == contents[1]
    assert set(contents[0]) == FILES

    text = contents[0]["table.csv"].decode()
    assert "\r" not in text
    assert len(pd.read_csv(StringIO(text))) > 0
    assert max(len(digits) for digits in re.findall(r"0\.0*(\d+)", text)) <= 6
    page = contents[0]["table.md"].decode()
    assert page.startswith(f"# {kind}\n")
    assert "3 seeds (0, 1, 2)" in page
    assert not re.search(r"\b(nan|None|NA)\b", page)
    config = validate(read_json(root / "config.json"))
    assert json.loads(contents[0]["provenance.json"])["runs"] == len(plan.study_runs(config, kind))
    with Image.open(BytesIO(contents[0]["figure.png"])) as image:
        assert np.asarray(image.convert("L")).std() > 5  # something is drawn


def test_further_tables_are_written_alone(root: Path) -> None:
    config = validate(read_json(root / "config.json"))
    for kind in BLOCKS:
        made = study_data.load(config, kind)
        further = [name for name in studies.load(kind, kind).tables(made) if name != "table"]
        assert further == list(studies.FURTHER_TABLES.get(kind, ()))
        for name in further:
            assert list(studies.contents(config, kind, name)) == [f"{name}.csv"]
    with pytest.raises(ConfigError, match="--table is rounds; the study grid has table, main_effects"):
        studies.contents(config, "grid", "rounds")


def test_one_seed_has_no_standard_deviation(root: Path) -> None:
    given = read_json(root / "config.json")
    assert "standard deviation over the seeds" in studies.contents(validate(given), "sweep")["table.md"]
    assert "standard deviation" not in studies.contents(validate({**given, "seeds": [0]}), "sweep")["table.md"]


def test_a_missing_run_or_study_is_one_sentence(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json(root / "elsewhere.json", {**read_json(root / "config.json"), "output": str(root / "elsewhere")})
    status, output = call(root, "paired", "none", "elsewhere.json")
    assert status == 1
    assert capsys.readouterr().err.startswith("feddep study: the run feddep/cora/m5/fedavg/seed0 has not finished")
    assert call(root, "unknown", "none")[0] == 1
    assert "studies.unknown is not in the configuration; there are curves, grid" in capsys.readouterr().err
    assert not output.exists()


def test_an_unknown_kind_is_one_sentence() -> None:
    with pytest.raises(
        ConfigError,
        match=r"studies\.mine\.kind is swep, .* known are curves, .*, paired, privacy, recovery, sweep, tradeoff, tuned$",
    ):
        studies.module_name("mine", "swep")
    with pytest.raises(ConfigError, match=r"studies\.yours is not in the configuration; there are made_up"):
        load(validate(RAW), "yours")


def test_planning_and_naming_the_stage_are_cheap() -> None:
    code = (
        "import sys, feddep.config.loading, feddep.reporting.studies as studies, feddep.stages.write_study\n"
        "studies.module_name('a', 'sweep')\n"
        "print([name for name in ('torch', 'pandas', 'matplotlib', 'scipy') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
