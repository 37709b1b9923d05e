"""Hostile text in every key that takes text, in targets, in the environment and in the name of the folder.

It is refused or taken as text; what would be executed makes a file called ``pwned``.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from trials import QUICK_AND_FULL, number_of

from feddep.config import variants
from feddep.config.loading import MEASURED, validate
from feddep.utils.errors import ConfigError
from graphs import npz_arrays, random_graph

pytestmark = [pytest.mark.dag, pytest.mark.timeout(600)]

REPOSITORY = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((REPOSITORY / "config" / "schema.json").read_text())
HOSTILE = (
    *("$(touch pwned)", "`touch pwned`", "; touch pwned", "a; touch pwned #", "| touch pwned", "&& touch pwned", "& touch pwned"),
    *("a\ntouch pwned", "a\r\ntouch pwned", "'; touch pwned; '", '"; touch pwned; "', "$(touch${IFS}pwned)", "<(touch pwned)"),
    *("> pwned", "a>pwned", "\\", "!!", "*", "?", "[a-z]", "~", "~root", "-rf", "--config=a", "-", "a b", " ", "", "\t"),
    *(
        "..",
        "../pwned",
        "a/../../pwned",
        "./..",
        ".",
        "./",
        "/",
        "//",
        ".git",
        "feddep",
        "workflow/rules",
        "Tests",
        "config/../docs",
    ),
    *("{wildcards}", "{config}", "{config[output]}", "{OUTPUT}", "{wildcards.seed}", "{input}", "{0}", "{", "}", "{{", "{a:q}"),
    *(
        "%s",
        "%(a)s",
        "%",
        "{{ 7 * 7 }}",
        "{% raw %}",
        "__import__('os').system('touch pwned')",
        "$HOME",
        "$",
        "$x$",
        r"$\frac{",
        "\\n",
    ),
    *(
        "é",
        "结果",
        "\u202e",
        "\x00",
        "\x1b[31m",
        "\ud800",
        "a\u0000b",
        "\u2028",
        "a" * 5000,
        "<script>touch pwned</script>",
        "&amp;",
        "#",
        "//a",
    ),
    *(
        "results\n",
        "null",
        "3",
        "True",
        "a,b=c",
        "a,b=$(touch${IFS}pwned)",
        "feddep,prototypes= 3",
        "quick,rounds=`touch${IFS}pwned`",
    ),
)
BASE: dict[str, Any] = {
    "output": "out",
    "records": {"directory": "records", "use": False},
    "data": {"mirror": None},
    "device": "cpu",
    "datasets": {
        "mini": {"synthetic": {"nodes": 60, "classes": 3, "communities": 6, "features": 30}},
        "own": {"path": "graph.npz"},  # in no table, so that it need not be there
    },
    "clients": [2],
    "seeds": [0],
    "partition": {"delta": 5},
    "settings": {"quick": {"rounds": 1, "hidden_channels": 8}},
    "methods": {"fedavg": {}},
    "tables": [{"setting": "quick", "datasets": ["mini"], "methods": ["fedavg"]}],
    "studies": [{"name": "history", "kind": "curves", "title": "", "runs": [{"settings": {"quick": {}}}]}],
    "audit": {},
    **{key: [] for key in MEASURED},
}


Place = tuple[str | int, ...]


def strings(schema: Any, place: Place = ()) -> Iterator[Place]:
    """The places of all text in a configuration: what a schema says is text, names of entries, and their options."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from strings(each, place)
    if schema.get("type") == "string" or "const" in schema or "enum" in schema:
        yield place
    for key, each in schema.get("properties", {}).items():
        yield from strings(each, (*place, key))
    if "items" in schema:
        yield from strings(schema["items"], (*place, 0))
    entries = schema.get("additionalProperties") or next(iter(schema.get("patternProperties", {}).values()), None)
    if entries or (schema.get("type") == "object" and "properties" not in schema):
        yield (*place, NAME)
    if isinstance(entries, dict):
        yield from strings(entries, (*place, ENTRY))
    if entries is True:
        yield (*place, "a")


NAME, ENTRY = "(name)", "(entry)"
"""In a place: the name of an entry, and any entry."""
OWN: Place = ("datasets", ENTRY, "path")
"""The file of a graph of one's own."""
EXISTING = {"datasets": "own", "settings": "quick", "methods": "fedavg"}


def replaced(value: Any, place: Place, text: str, path: Place = ()) -> Any:
    """A configuration with a text at a place, which is made where there is none."""
    if not place:
        return text
    key, *rest = place
    if isinstance(key, int):
        items = list(value) if isinstance(value, list) and value else [None]
        return [replaced(items[0], tuple(rest), text, (*path, key)), *items[1:]]
    items = dict(value) if isinstance(value, dict) else {}
    if key == NAME:
        return {**items, text: next(iter(items.values()), {})}
    if key == ENTRY:
        key = next((EXISTING[str(part)] for part in reversed(path) if part in EXISTING), "mini")
    return {**items, key: replaced(items.get(key), tuple(rest), text, (*path, key))}


PLACES = list(dict.fromkeys(strings(SCHEMA)))
FEWER_PLACES = [place for place in PLACES if place[0] != "methods"]


def test_the_number_of_trials_is_known():
    found = tuple(len(places) * len(HOSTILE) + len(TARGETS) for places in (FEWER_PLACES, PLACES))
    assert found == QUICK_AND_FULL["injections"]


def test_every_key_that_takes_text_is_found():
    assert {
        ("output",),
        ("records", "directory"),
        ("data", "mirror"),
        ("studies", 0, "title"),
        ("studies", 0, "name"),
        ("tables", 0, "setting"),
        ("audit", "membership", 0),
        ("datasets", NAME),
        OWN,
        ("settings", ENTRY, "optimizer"),
        ("methods", "feddep", "clustering"),
        ("studies", 0, "runs", 0, "methods", NAME),
    } <= set(PLACES)


def accepted(place: Place, text: str) -> dict[str, Any] | None:
    """The configuration with a text at a place; None if it is refused in one sentence."""
    raw = replaced(BASE, place, text)
    try:
        validate(raw)
    except ConfigError as error:
        sentence = str(error)
    else:
        return raw
    assert sentence.isprintable(), (place, text)
    assert len(sentence) < 2000 + 3 * len(text)
    return None


@pytest.fixture(scope="module")
def taken() -> dict[Place, list[str]]:
    """The texts that are not refused, by place."""
    places = PLACES if number_of("injections") == QUICK_AND_FULL["injections"][1] else FEWER_PLACES
    found = {place: [text for text in HOSTILE if accepted(place, text) is not None] for place in places}
    return {place: texts for place, texts in found.items() if texts}


def test_text_is_refused_or_harmless(taken: dict[Place, list[str]]):
    """Only a mirror, a title and a file that is read may hold more than names and paths do, and none is a part of a command."""
    free = {("data", "mirror"), ("studies", 0, "title"), OWN}
    assert free <= set(taken)
    for place in set(taken) - free:
        assert all(re.fullmatch(r"[A-Za-z0-9._/+=@,~-]+", text) and text[0] not in "-~" for text in taken[place]), place
        assert not any(".." in text for text in taken[place])


@pytest.mark.parametrize(
    "path", ["feddep", "feddep/a", "workflow", "results/../tests/a", ".git/a", ".", "a/..", "/", "README.md", "a/" * 600]
)
@pytest.mark.parametrize("place", [("output",), ("records", "directory")])
def test_nothing_is_written_to_the_source(place: Place, path: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(REPOSITORY)
    for each in (path, str(REPOSITORY / path), path.upper() if path.isalpha() else path):
        assert accepted(place, each) is None, each


@pytest.mark.parametrize("records", ["out", "out/runs", "out/tables/a", "OUT/../out/steps", "."])
def test_records_lie_elsewhere_than_results(records: str):
    assert accepted(("records", "directory"), records) is None
    assert validate({**BASE, "output": "out/a", "records": {"directory": "out/records"}})
    with pytest.raises(ConfigError, match="records must lie elsewhere than results"):
        validate({**BASE, "output": "out/a", "records": {"directory": "out"}})


TARGETS = (
    "out/runs/quick/mini/m2/fedavg,prototypes=$(touch${IFS}pwned)/seed0/metrics.json",
    "out/runs/quick,rounds=`touch${IFS}pwned`/mini/m2/fedavg/seed0/metrics.json",
    "out/runs/quick/mini;touch pwned;/m2/fedavg/seed0/metrics.json",
    "out/splits/mini/seed0;touch pwned.safetensors",
    "out/graphs/{config}.safetensors",
    "out/raw/$(touch pwned)/MANIFEST.json",
    "out/studies/$(touch pwned)/table.csv",
    "out/audit/membership/fedavg;touch pwned.csv",
    "out/../pwned",
    "--config=output=$(touch pwned)",
    "out/runs/quick/mini/m2/fedavg/seed0/metrics.json\n",
)


def test_no_spelled_name_has_other_characters_than_numbers_and_words():
    for text in HOSTILE:
        for name in (text, f"feddep,prototypes={text}", f"feddep,{text}=3"):
            plain = re.fullmatch(r"[a-z][a-z0-9_]*(,[a-z_]+=[A-Za-z0-9_.+-]+)*", name)
            assert bool(re.fullmatch(variants.PATTERN, name)) == bool(plain), name
    assert all(re.fullmatch(variants.PATTERN, name) for name in variants_of_records())


def variants_of_records() -> set[str]:
    """Every spelled name of a published record."""
    paths = (REPOSITORY / "results" / "records").rglob("seed*.json")
    return {part for path in paths for part in path.relative_to(REPOSITORY / "results" / "records").parts if "," in part}


FOLDER = "a b'c\"d$(touch pwned)`touch pwned`{x}{{y}}%s;#&"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in a folder of a hostile name, with its environment."""
    folder = tmp_path_factory.mktemp("hostile") / FOLDER
    for name in ("feddep", "workflow", "config"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def snakemake(project: Path, *arguments: str) -> tuple[int, str]:
    """Exit status and output, after making sure that nothing was executed."""
    command = [str(project / ".venv" / "bin" / "python"), "-m", "snakemake", "--configfile", "mine.yaml", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(project), "FEDDEP_DATA_MIRROR": "$(touch pwned);`touch pwned`"}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, errors="replace")
    assert not [path for path in project.parent.rglob("*") if path.name == "pwned"]
    return done.returncode, done.stdout + done.stderr


def together(texts: list[str], most: int) -> list[str]:
    """The texts one after the other, in as few texts of that length as can be."""
    lines = [""]
    for text in texts:
        lines = [*lines, text] if len(lines[-1]) + len(text) >= most else [*lines[:-1], f"{lines[-1]} {text}"]
    return lines


def hostile_path(texts: list[str]) -> str:
    """The path of an archive below folders with these texts as their names, as many as a path has room for."""
    names = [name for text in texts for name in text.split("/") if name not in ("", ".", "..", "pwned")]
    path = "graph.npz"
    for name in sorted(set(names)):
        path = f"{name}/{path}" if len(name) + len(path) < 990 else path
    return path


def test_what_is_accepted_runs_and_is_not_executed(project: Path, taken: dict[Place, list[str]]):
    titles = together(taken["studies", 0, "title"], 190)
    study = BASE["studies"][0]
    studies = [{**study, "name": f"null{number}", "title": title} for number, title in enumerate(titles)]
    own = hostile_path(taken[OWN])
    (project / own).parent.mkdir(parents=True)
    np.savez(project / own, **npz_arrays(random_graph(60, 150)))
    changes = {
        "datasets": {**BASE["datasets"], "own": {"path": own}},
        "tables": [{**BASE["tables"][0], "datasets": ["mini", "own"]}],
        "output": "/".join(text for text in taken["output",] if not text.startswith("/")),
        "records": {"directory": "/".join(["records", *(text for text in taken["records", "directory"] if text[0] != "/")])},
        "data": {"mirror": together(taken["data", "mirror"], 900)[0]},
        "studies": studies,
    }
    (project / "mine.yaml").write_text(yaml.safe_dump({**BASE, **changes}))
    for arguments in (["all"], ["publish"], ["--report", "report.html"]):
        status, printed = snakemake(project, "--cores", "2", *arguments)
        assert status == 0, printed
    for number, title in enumerate(titles):
        assert (project / changes["output"] / f"studies/null{number}/table.md").read_text().startswith(f"# {title}\n")
    for dataset in ("mini", "own"):
        assert (project / changes["records"]["directory"] / f"quick/{dataset}/m2/fedavg/seed0.json").is_file()
    assert (project / "report.html").stat().st_size > 10**5


@pytest.mark.parametrize("target", TARGETS)
def test_hostile_targets_are_refused(project: Path, target: str):
    (project / "mine.yaml").write_text(yaml.safe_dump(BASE))
    status, printed = snakemake(project, "--cores", "1", target)
    assert status != 0, printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("text", ["[unclosed", "{a", "$(touch pwned)", "!!python/object/apply:os.system [touch pwned]"])
def test_hostile_text_on_the_command_line_is_refused(project: Path, text: str):
    (project / "mine.yaml").write_text(yaml.safe_dump(BASE))
    status, printed = snakemake(project, "--dry-run", "--config", f"output={text}")
    assert status != 0
    assert re.search("^feddep: (--config output is not valid YAML|output is )", printed, re.MULTILINE), printed
    assert "Traceback" not in printed


WRONG_TARGETS = {
    "out/runs/nosuch/mini/m2/fedavg/seed0/metrics.json": "settings.nosuch is not in the configuration",
    "out/runs/quick/mini/m2/nosuch/seed0/metrics.json": "methods.nosuch is not a known method",
    "out/runs/quick/mini/m2/fedavg,x=3/seed0/metrics.json": "methods.fedavg.x is not a known key",
    "out/runs/quick/mini/whole/fedavg/seed0/metrics.json": "fedavg works on the subgraphs of clients",
    "out/runs/quick/mini/m2/global/seed0/metrics.json": "global sees the whole graph",
    "out/splits/nosuch/seed0.safetensors": "datasets.nosuch is not in the configuration",
    "out/graphs/nosuch.safetensors": "datasets.nosuch is not in the configuration",
    "out/partitions/nosuch/m2/seed0.json": "datasets.nosuch is not in the configuration",
    "out/partitions/mini/m99/seed0.json": "clients is 99; a graph of 60 nodes",
    "out/raw/nosuch/MANIFEST.json": "datasets.nosuch is not in the configuration",
    "out/measurements/quality/quick/mini/m2/fedavg/seed0.json": "the method fedavg has no step prototypes",
    "out/steps/pretrain/mini/m2/aaaaaaaaaaaa/seed0.safetensors": "is a step of no run that is planned or asked for",
    "out/tables/audit.md": "methods.feddep.prototypes has a value for cora, but none for mini",
}


@pytest.mark.parametrize("target", WRONG_TARGETS)
def test_what_cannot_be_made_is_one_sentence(project: Path, target: str):
    """Of an error in what a rule reads Snakemake would print a traceback; and the folder is not left locked."""
    methods = {"fedavg": {}, "feddep": {"prototypes": {"cora": 3}}}
    (project / "mine.yaml").write_text(yaml.safe_dump({**BASE, "methods": methods}))
    status, printed = snakemake(project, "--cores", "1", target)
    assert status != 0
    assert re.search(rf"^feddep( \w+)?: .*{re.escape(WRONG_TARGETS[target])}", printed, re.MULTILINE), printed
    assert "Traceback" not in printed
    assert not list((project / ".snakemake" / "locks").glob("*"))
