"""The table of runs: what training writes is what is read, from the cache or from the tables."""

import json
import math
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feddep.config.loading import Config, load, validate
from feddep.datasets.graph_statistics import statistics
from feddep.experiment import data_tables, plan, runs
from feddep.experiment.provenance import environment
from feddep.utils.csv_files import append_rows, read_checked
from feddep.utils.errors import DataError
from feddep.utils.files import write_json
from graphs import random_graph

ROOT = Path(__file__).parents[2]
RAW: dict[str, Any] = {
    "datasets": {"tiny": {"synthetic": {}}},
    "clients": [2, 3],
    "seeds": [0],
    "settings": {"quick": {"rounds": 2}, "slow": {"rounds": 9}, "same": {"rounds": 2}},
    "tables": [
        {"setting": "quick", "methods": ["global", "fedavg"]},
        {"setting": "slow", "methods": ["feddep"]},
    ],
    "studies": [
        {
            "name": "few",
            "kind": "sweep",
            "runs": [{"datasets": {"tiny": {"labelled": [0.1]}}, "seeds": [7]}],
        }
    ],
}
PROVENANCE = {
    **environment("cpu", 1),
    "data_fingerprint": "f" * 64,
    "seconds": 1.25,
    "seconds_before": {"pretrain": 0.5},
}
LATER = "2999-01-01T00:00:00+00:00"
PLANNED = plan.all_runs(validate(RAW))
QUICK = PLANNED[:3]  # Global, and FedAvg for two numbers of clients


def config_in(folder: Path, **records: Any) -> Config:
    return validate(
        {
            **RAW,
            "output": str(folder / "out"),
            "records": {"directory": str(folder / "runs"), **records},
        }
    )


def write(config: Config, run: plan.Run, result: dict[str, Any]) -> Path:
    """What the training of a run writes."""
    file = runs.cached(config, run.key)
    runs.write_cached(run, result, PROVENANCE, file)
    return file


@st.composite
def results(draw: st.DrawFn, rounds: int | None = None) -> dict[str, Any]:
    """What a run may measure."""
    share, count = st.floats(0, 1), rounds or draw(st.integers(1, 4))
    both = st.fixed_dictionaries({"best": share, "last": share})
    some = draw(
        st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("global_validation", "local_before", "local_after"), both)
        )
    )
    series = (
        "loss",
        "validation",
        "test",
        *(name for name in ("local_before", "local_after") if name in some),
    )
    kind = st.sampled_from(["model", "prototypes", "training"])
    sent = st.fixed_dictionaries(
        {
            "client": st.integers(0, 2),
            "direction": st.just("up"),
            "kind": kind,
            "bytes": st.integers(0, 2**40),
        }
    )
    return {
        **{"accuracy": draw(both), "validation": draw(both), **some},
        "macro_f1": {moment: draw(share) for moment in ("global", "before", "after")},
        "best_round": draw(
            st.one_of(
                st.integers(1, count), st.lists(st.integers(1, count), min_size=2, max_size=2)
            )
        ),
        "stalled": draw(st.booleans()),
        "clients": [{"nodes": 3, "accuracy": each} for each in draw(st.lists(both, max_size=2))],
        "curve": {
            "round": list(range(1, count + 1)),
            **{name: draw(st.lists(share, min_size=count, max_size=count)) for name in series},
        },
        "communication": draw(st.lists(sent, max_size=4)),
    }


RESULT: dict[str, Any] = {
    **{
        name: {"best": 0.1 + 0.2, "last": 1 / 3}
        for name in ("accuracy", "validation", "local_before")
    },
    "macro_f1": {"global": math.nan, "before": 0.25, "after": 0.75},
    "best_round": 2,
    "stalled": True,
    "clients": [],
    "curve": {
        "round": [1, 2],
        "loss": [1.5, 0.125],
        "validation": [0.5, 0.75],
        "test": [0.25, 0.5],
        "local_before": [0.0, 0.1],
    },
    "communication": [
        {"client": 0, "direction": "up", "kind": "model", "messages": 1, "bytes": 8},
        {
            "client": 1,
            "direction": "down",
            "kind": "prototypes",
            "messages": 1,
            "bytes": 3,
        },
        {
            "client": 0,
            "direction": "up",
            "kind": "prototypes",
            "messages": 1,
            "bytes": 4,
        },
    ],
}


def test_a_row_says_which_run_it_is_and_what_it_measured():
    config = validate(RAW)
    names = {"setting": "quick,dropout=0.25", "dataset": "tiny,labelled=0.1"}
    divided = {"split": "within_clients,train=0.3", "partition": "dirichlet,beta=0.5"}
    run = plan.one_run(config, "feddep,prototypes=7", 3, 4, **names, **divided)
    row = runs.row("k", "quick", run.specification, RESULT, PROVENANCE)
    assert list(row) == list(runs.COLUMNS)
    expected = {
        **{
            "key": "k",
            "setting": "quick",
            "dataset": "tiny",
            "data_options": "labelled=0.1",
            "split": "within_clients train=0.3",
            "partition": "dirichlet beta=0.5",
        },
        **{
            "clients": 3,
            "method": "feddep",
            "parameters": "prototypes=7",
            "seed": 4,
            "rounds": 2,
            "best_round": "2",
            "stalled": True,
        },
        **{
            "test": 0.1 + 0.2,
            "test_last": 1 / 3,
            "local_before": 0.1 + 0.2,
            "local_after": None,
            "client_accuracies": None,
            "macro_f1": None,
            "macro_f1_before": 0.25,
            "macro_f1_after": 0.75,
        },
        **{
            "bytes": 15,
            "bytes_by_kind": '{"model": 8, "prototypes": 7}',
            "seconds": 1.25,
            "seconds_before": '{"pretrain": 0.5}',
        },
        "data": "f" * 16,
    }
    assert {name: row[name] for name in expected} == expected
    assert set(row["training"].split()) >= {"dropout=0.25", "rounds=2"}
    alone = runs.described("quick", plan.one_run(config, "global", seed=4).specification)
    assert (alone["partition"], alone["clients"], alone["parameters"]) == (None, None, None)
    assert alone["split"] == "random"


@settings(max_examples=10)
@given(st.lists(results(), min_size=len(PLANNED), max_size=len(PLANNED)), st.data())
def test_what_is_written_is_read_from_the_cache_and_from_the_tables(
    measured: list[dict[str, Any]], data: st.DataObject
):
    with tempfile.TemporaryDirectory() as folder:
        config = config_in(Path(folder))
        files = [write(config, run, result) for run, result in zip(PLANNED, measured, strict=True)]
        asked = data.draw(st.permutations(PLANNED))
        rows, curves = runs.load(config, asked), runs.load_curves(config, asked)
        by_run = dict(zip(PLANNED, measured, strict=True))
        assert rows["test"].tolist() == [by_run[run]["accuracy"]["best"] for run in asked]
        assert rows["method"].tolist() == [run.method.label for run in asked]
        assert curves["loss"].tolist() == [
            float(np.float32(value)) for run in asked for value in by_run[run]["curve"]["loss"]
        ]

        # Published in two parts, in any order, the tables have the same.
        first = data.draw(st.lists(st.sampled_from(PLANNED), unique=True))
        assert runs.publish(config, first) == len(first)
        for run in first:
            runs.cached(config, run.key).unlink()
        assert runs.load(config, asked).equals(rows)
        assert runs.publish(config, PLANNED) == len(PLANNED) - len(first)
        assert runs.publish(config, PLANNED) == 0
        for file in files:
            file.unlink(missing_ok=True)
        assert runs.missing(config, PLANNED) == {}
        assert runs.load(config, asked).equals(rows)
        assert runs.load_curves(config, asked).equals(curves)
        for protocol in ("quick", "slow"):
            of = {run for run in PLANNED if run.setting.name == protocol}
            publications = bool(of & set(first)) + bool(of - set(first))
            folder_of_curves = Path(folder, "runs", protocol)
            assert len(list(folder_of_curves.iterdir())) == publications
            assert folder_of_curves.with_suffix(".csv").is_file()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Of a folder whose tables have the quick runs."""
    config = config_in(tmp_path)
    for run in QUICK:
        write(config, run, RESULT)
    runs.publish(config, QUICK)
    return config


def test_the_tables_are_left_out_if_the_configuration_says_so(config: Config, tmp_path: Path):
    assert runs.missing(config, QUICK) == {}
    again = config_in(tmp_path, use=False)
    assert list(runs.missing(again, QUICK)) == QUICK
    write(again, QUICK[1], {**RESULT, "accuracy": {"best": 0.0, "last": 0.0}})
    assert runs.load(again, QUICK)["test"].tolist() == [0.1 + 0.2, 0.0, 0.1 + 0.2]
    assert runs.load(config, QUICK)["test"].tolist() == [0.1 + 0.2] * 3


def test_runs_of_one_key_have_a_row_each(config: Config):
    same = [QUICK[0], plan.one_run(validate(RAW), "global", setting="same")]
    assert runs.load(config, same)["setting"].tolist() == ["quick", "same"]


def test_a_recorded_run_stays_until_its_line_is_deleted(config: Config, tmp_path: Path):
    table, curves = tmp_path / "runs" / "quick.csv", tmp_path / "runs" / "quick"
    before, (former,) = table.read_text(), curves.iterdir()
    again = config_in(tmp_path, use=False)
    run, key = QUICK[1], QUICK[1].key
    curve = {**RESULT["curve"], "loss": [2.5, 2.0]}
    result = {**RESULT, "accuracy": {"best": 0.75, "last": 0.5}, "curve": curve}
    file = runs.cached(config, key)
    runs.write_cached(run, result, {**PROVENANCE, "time": LATER}, file)
    assert runs.publish(again, QUICK) == 0
    assert table.read_text() == before

    lines = [line for line in before.splitlines(True) if not line.startswith(key)]
    table.write_text("".join(lines))
    assert runs.publish(config, QUICK) == 1
    assert table.read_text().startswith("".join(lines))
    assert runs.load(config, QUICK)["test"].tolist() == [0.1 + 0.2, 0.75, 0.1 + 0.2]
    assert runs.load_curves(config, QUICK)["loss"].tolist() == [1.5, 0.125, 2.5, 2.0, 1.5, 0.125]
    assert former in curves.iterdir()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("file", [0, 1])
@pytest.mark.parametrize("recorded", [0, 1])
def test_a_publication_that_is_killed_is_made_up_for(
    recorded: int, file: int, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Killed before or after the curves or the table are in place, with what it was writing left
    there.
    """
    config = config_in(tmp_path)
    for number, run in enumerate(QUICK):
        write(config, run, {**RESULT, "accuracy": {"best": number / 4, "last": 0.5}})
    rows, curves = runs.load(config, QUICK), runs.load_curves(config, QUICK)
    runs.publish(config, QUICK[:recorded])
    places: list[Path] = []
    replace = Path.replace

    class Killed(BaseException):
        pass

    def killed(self: Path, target: Path) -> Path:
        places.append(target)
        if len(places) > file and moment == "before":
            raise Killed
        replace(self, target)
        if len(places) > file:
            raise Killed
        return target

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        patched.setattr(Path, "unlink", lambda self, missing_ok=False: None)
        with pytest.raises(Killed):
            runs.publish(config, QUICK[:2])
    assert [place.suffix for place in places] == [".parquet", ".csv"][: file + 1]

    done = 2 if (file, moment) == (1, "after") else recorded
    assert list(runs.missing(config, QUICK)) == QUICK[done:]
    assert runs.load(config, QUICK).equals(rows)
    assert runs.load_curves(config, QUICK).equals(curves)
    assert runs.publish(config, QUICK) == len(QUICK) - done
    for run in QUICK:
        runs.cached(config, run.key).unlink()
    assert runs.load(config, QUICK).equals(rows)
    assert runs.load_curves(config, QUICK).equals(curves)


PUBLISHER = """
import json, sys
from pathlib import Path
from feddep.config.loading import validate
from feddep.config.models import Synthetic
from feddep.datasets.graph_statistics import statistics
from feddep.datasets.synthetic import planted_partition
from feddep.experiment import data_tables, plan, runs
from feddep.utils.files import write_json
config = validate(json.loads(sys.argv[1]))
GRAPH = {"source": "synthetic", **statistics(planted_partition(**Synthetic().model_dump()))}
print("ready", flush=True)
sys.stdin.readline()
for run in plan.runs(config):
    if run.method.name == sys.argv[2]:
        runs.publish(config, [run])
        facts = Path(config["output"], f"{run.method}{run.seed}.json")
        content = {**GRAPH, "name": run.method.name, "nodes": run.seed}
        write_json(facts, content, run.key)
        data_tables.publish(config, "graphs", {run.key: str(facts)})
"""


def test_two_publications_at_once_both_end_in_the_tables(tmp_path: Path):
    raw = {
        **{**RAW, "studies": [], "clients": [2], "seeds": list(range(15))},
        "tables": [{"setting": "quick", "methods": ["global", "fedavg"]}],
        "output": str(tmp_path / "out"),
        "records": {"directory": str(tmp_path / "runs")},
    }
    config = validate(raw)
    planned = plan.runs(config)
    for run in planned:
        write(config, run, RESULT)
    command = [sys.executable, "-c", PUBLISHER, json.dumps(raw)]
    publishers = [
        subprocess.Popen([*command, method], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for method in ("global", "fedavg")
    ]
    for each in publishers:
        assert each.stdout is not None
        each.stdout.readline()
    for each in publishers:
        assert each.stdin is not None
        each.stdin.write(b"go\n")
        each.stdin.flush()
    for each in publishers:
        each.communicate()
    assert [each.returncode for each in publishers] == [0, 0]
    assert runs.missing(config, planned) == {}
    assert len(runs.read_table(tmp_path / "runs" / "quick.csv")) == 30
    assert len(runs.load_curves(config, planned)) == 30 * 2
    assert len(pd.read_csv(tmp_path / "runs" / "graphs.csv")) == 30


FAULTS = [
    *(("test", cell) for cell in ("nan", "inf", "-0.1", "1.5", "1e999", "x", "0x1", "[1")),
    *(("seed", cell) for cell in ("", "-1", "1.5", "x", "7")),
    *(("clients", cell) for cell in ("0", "4", "2.5", "nan")),
    *(("bytes", cell) for cell in ("", "-4", "inf", "1.5")),
    *(("rounds", cell) for cell in ("", "0", "3", "true")),
    *(("best_round", cell) for cell in ("", "0", "[1", "[1, x]", "null")),
    *(("client_accuracies", cell) for cell in ("[]", "[1.5]", "[-0.5]", "[0.5", "0.5", "[0.5,]")),
    *(("bytes_by_kind", cell) for cell in ("", "[]", '{"model": -1}', '{"model": 1', "{model: 1}")),
    *(("seconds_before", cell) for cell in ("", "1", '{"pretrain": "1"}', "nan")),
    *(("seconds", cell) for cell in ("", "-1", "nan", "inf")),
    *(("stalled", cell) for cell in ("", "2", "maybe")),
    *(("key", cell) for cell in ("", "0123", "z" * 16)),
    *(("time", cell) for cell in ("", "2026", "2026-01-01")),
    *(("method", "feddep"), ("dataset", "cora"), ("data", "f" * 15), ("split", "")),
]
"""Cells that no table of runs has."""


@pytest.mark.parametrize(("column", "cell"), FAULTS)
def test_a_cell_that_is_not_allowed_is_named(
    column: str, cell: str, config: Config, tmp_path: Path
):
    file = tmp_path / "runs" / "quick.csv"
    table = pd.read_csv(file, dtype=str, keep_default_na=False).drop(columns="digest")
    table.loc[1, column] = cell
    file.unlink()
    append_rows(file, table)
    with pytest.raises(DataError, match=column if column != "rounds" else "rounds|curves"):
        runs.load(config, QUICK)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.30000000000000004,0.3333333333333333", "0.3333333333333333,0.30000000000000004"),
        ("0.30000000000000004", "0.30000000000000009"),
        (",1.25,", ",1.35,"),
        (",0.75,", ",,"),
        ("rounds=2", "rounds=3"),
        ("Linux", "Windows"),
        (",True,", ",False,"),
    ],
)
def test_a_changed_cell_that_could_be_true_is_found(
    old: str, new: str, config: Config, tmp_path: Path
):
    file = tmp_path / "runs" / "quick.csv"
    lines = file.read_text().splitlines(keepends=True)
    assert old in lines[2]
    lines[2] = lines[2].replace(old, new, 1)
    file.write_text("".join(lines))
    with pytest.raises(DataError, match=rf"quick\.csv.* line 3, of the key {QUICK[1].key}"):
        runs.load(config, QUICK)


def test_digests_of_rows_hold_whatever_the_columns_order_and_those_added(tmp_path: Path):
    types = {"key": "string", "a": "float64", "b": "string", "later": "Int64"}
    rows = pd.DataFrame({"key": ["x", "y"], "a": [0.1, math.nan], "b": ['1, "2"', "="]})
    append_rows(tmp_path / "old.csv", rows)
    append_rows(tmp_path / "new.csv", rows[["b", "key", "a"]].assign(later=pd.NA))
    old, new = (pd.read_csv(tmp_path / name) for name in ("old.csv", "new.csv"))
    assert old["digest"].tolist() == new["digest"].tolist()
    for name in ("old.csv", "new.csv"):
        found = read_checked(tmp_path / name, types, {}, ("a", "b", "later"))
        assert found[list(rows)].equals(rows.astype({name: types[name] for name in rows}))


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [*lines, lines[1]],  # a row twice
        lambda lines: [lines[0], lines[1][:99] + b"\n", *lines[2:]],
        lambda lines: [*lines[:-1], lines[-1][:-1]],
        lambda lines: [lines[0], lines[1].replace(b"quick", b"qu\xffck"), *lines[2:]],
        lambda lines: [lines[0], lines[1].replace(b"quick", b"qu\0ck"), *lines[2:]],
        lambda lines: [lines[0], lines[1][:60] + b'"' + lines[1][60:], *lines[2:]],
        lambda lines: [lines[0], b"0," + lines[1], *lines[2:]],
        lambda lines: [lines[0].replace(b"name", b"nome").replace(b"seed", b"sead"), *lines[1:]],
        lambda lines: [line.replace(b",", b";") for line in lines],
        lambda lines: [b"a,b\n", b"1,2\n"],
        lambda lines: [],
    ],
)
@pytest.mark.parametrize("name", ["quick", "graphs"])
def test_a_damaged_table_is_an_error_and_stays(
    name: str, damage: Any, config: Config, tmp_path: Path
):
    facts = {"name": "tiny", "source": "quick", **statistics(random_graph(200, 300))}
    write_json(tmp_path / "graph.json", facts, "a" * 16)
    files = {"a" * 16: str(tmp_path / "graph.json")}
    data_tables.publish(config, "graphs", files)
    file = tmp_path / "runs" / f"{name}.csv"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(damage(lines)))
    damaged = file.read_bytes()
    with pytest.raises(DataError, match=name):
        runs.load(config, QUICK), data_tables.load(config, "graphs", files)
    with suppress(DataError):  # nothing is left to publish, if what is there can be read
        runs.publish(config, QUICK), data_tables.publish(config, "graphs", files)
    assert file.read_bytes() == damaged


def test_a_row_without_all_of_its_curves_is_an_error(config: Config, tmp_path: Path):
    (file,) = (tmp_path / "runs" / "quick").iterdir()
    curves = pd.read_parquet(file)
    for kept in (curves.iloc[1:], curves[curves["key"] != QUICK[1].key]):
        kept.to_parquet(file)
        with pytest.raises(DataError, match="curves"):
            runs.load(config, QUICK)
    for name, value in (("test", 1.5), ("validation", -0.5), ("loss", math.inf)):
        curves.assign(**{name: value}).to_parquet(file)
        with pytest.raises(DataError, match=file.name):
            runs.load_curves(config, QUICK)


def test_a_flipped_bit_of_curves_is_found(config: Config, tmp_path: Path):
    (file,) = (tmp_path / "runs" / "quick").iterdir()
    content, before = file.read_bytes(), runs.load_curves(config, QUICK)
    for place in range(0, len(content), 97):
        file.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        try:
            assert runs.load_curves(config, QUICK).equals(before)
        except DataError:
            continue


def test_a_file_that_is_missing_or_damaged_is_an_error_that_names_it(tmp_path: Path):
    config = config_in(tmp_path)
    file = write(config, QUICK[0], RESULT)
    for content in (file.read_text()[:-9], None):
        file.unlink() if content is None else file.write_text(content)
        for read in (runs.load, runs.load_curves, runs.publish):
            with pytest.raises(DataError, match=re.escape(file.name)):
                read(config, QUICK[:1])


def test_rows_without_their_curves_are_an_error(config: Config, tmp_path: Path):
    next((tmp_path / "runs" / "quick").iterdir()).unlink()
    for read in (runs.load, runs.load_curves):
        with pytest.raises(DataError, match=re.escape(QUICK[0].key)):
            read(config, QUICK[:1])


def test_every_run_of_the_benchmark_is_in_its_tables(monkeypatch: pytest.MonkeyPatch):
    """No key has changed since they were trained; and a table has what a training writes."""
    monkeypatch.chdir(ROOT)
    config = load("config/default.yaml")
    planned = plan.all_runs(config)
    assert list(runs.missing(config, planned)) == []
    rows = pd.concat([runs.read_table(file) for file in runs.tables(Path("results/runs"))])
    assert rows["key"].is_unique
    assert rows.query("test < 0 or test > 1 or rounds < 1 or seconds <= 0").empty
