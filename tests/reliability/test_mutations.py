"""A bit that flips anywhere is noticed: intermediate files are made again, a damaged record is an error that names it."""

import random
import re
import shutil
from collections import defaultdict
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from trials import number_of

from feddep.config.loading import load
from feddep.experiment import integrity, records
from feddep.graph.split import Split
from feddep.reporting import page_keys
from feddep.utils.errors import DataError
from feddep.utils.storage import read_json, read_result, write_json, write_result
from workspace import CONFIG, FEDAVG, FEDDEP, Workspace, metrics

pytestmark = [pytest.mark.dag, pytest.mark.slow, pytest.mark.timeout(900)]

RUN = "mini/m2/feddep/seed0"
TARGETS = ("all", "out/tables/quality.md", "out/tables/privacy.md")
SETTINGS: dict[str, Any] = {
    "tables": [{**CONFIG["tables"][0], "methods": ["global", "fedavg", "feddep"]}],
    "methods": {"feddep": FEDDEP},
    "quality": [{"methods": {"feddep": {}}}],
    "studies": [{"name": "history", "kind": "curves", "runs": [{"methods": {"fedavg": {}}}]}],
}
OUTPUTS = ("graphs", "splits", "partitions", "steps", "runs", "measurements", "tables", "figures", "report", "studies")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace in which every kind of file was made once, and published.  Not to be changed: take a :func:`copy`."""
    workspace = Workspace.new(tmp_path_factory.mktemp("made"))
    workspace.configure(**SETTINGS)
    workspace.run(*TARGETS)
    return workspace


@pytest.fixture
def copy(made: Workspace, tmp_path: Path) -> Workspace:
    """A copy of the workspace, with its memory of what was made from what."""
    shutil.copytree(made.directory, tmp_path / "copy")
    workspace = Workspace(tmp_path / "copy")
    workspace.configure(**SETTINGS)
    return workspace


def kinds(workspace: Workspace) -> dict[tuple[str, str], list[Path]]:
    """The files of the output by folder and ending."""
    found = defaultdict(list)
    for folder in OUTPUTS:
        for path in sorted(workspace.output.joinpath(folder).rglob("*")):
            if path.is_file():
                found[folder, path.suffix].append(path)
    assert {folder for folder, _ in found} == set(OUTPUTS)
    return dict(found)


def shown_keys(workspace: Workspace) -> dict[Path, str]:
    """What a plan knows of pages: the key of what each is to show, by its list of checksums."""
    config = load(workspace.directory / "config" / "config.yaml", workspace.directory / "config.yaml")
    shown = {workspace.directory / path: key for path, key in page_keys.shown_keys(config).items()}
    assert all(path.is_file() for path in shown)
    return shown


def flip(path: Path, draw: random.Random) -> str:
    """Flip a random bit of a file; returns where."""
    content = bytearray(path.read_bytes())
    place = draw.randrange(8 * len(content))
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)
    return f"bit {place} of {path}"


def test_no_flipped_bit_passes_unnoticed(copy: Workspace) -> None:
    """One at a time, every kind of file equally often."""
    copy.run("publish")
    published = sorted((copy.directory / "records").rglob("*.json"))
    files = {**kinds(copy), ("records", ".json"): published}
    shown = shown_keys(copy)
    assert list(integrity.damaged(copy.output, shown)) == []
    draw = random.Random(0)
    for kind in islice(cycle(files), number_of("mutations")):
        path = draw.choice(files[kind])
        before = path.read_bytes()
        flipped = flip(path, draw)
        if kind[0] == "records":
            with pytest.raises(DataError, match=re.escape(str(path))):
                records.read(path)
        else:
            (found,) = integrity.damaged(copy.output, shown)
            assert found[0] in (path, *path.parent.glob("*.sha256")), flipped
        path.write_bytes(before)


def results(workspace: Workspace) -> dict[str, Any]:
    """All that is determined by the configuration: every result and step without its provenance, and the main table."""
    output = workspace.output
    found: dict[str, Any] = {"table": (output / "tables" / "accuracy.csv").read_text()}
    for folder in ("splits", "partitions", "graphs", "steps", "runs", "measurements"):
        for path in sorted(output.joinpath(folder).rglob("*")):
            if path.suffix == ".safetensors":
                found[path.name] = path.read_bytes()
            elif path.suffix == ".json":
                found[str(path.relative_to(output))] = {**read_result(path), "provenance": None}
    return found


def test_what_is_damaged_is_made_again(copy: Workspace) -> None:
    """Every kind of file at once; the same command makes them again."""
    before, shown, draw = results(copy), shown_keys(copy), random.Random(1)
    files = kinds(copy)
    edited, truncated = copy.directory / metrics(FEDAVG), copy.output / "runs" / "quick" / RUN / "model.safetensors"
    for path in [path for kind in files.values() for path in draw.sample(kind, 1) if path not in (edited, truncated)]:
        flip(path, draw)
    content = read_json(edited)
    content["result"]["accuracy"]["best"] = 0.99
    write_json(edited, content)
    truncated.write_bytes(truncated.read_bytes()[:1000])
    noticed = list(integrity.damaged(copy.output, shown))
    planned = copy.jobs(*TARGETS)
    printed = copy.run(*TARGETS)
    assert printed.count("made again where it is needed") == len(noticed) >= 15
    assert {"prepare", "split", "partition", "step", "classify", "tables", "figures", "report", "study"} <= set(planned)
    assert list(integrity.damaged(copy.output, shown)) == []
    assert results(copy) == before
    assert copy.jobs(*TARGETS) == {}


def test_a_file_under_a_foreign_key_is_made_again(copy: Workspace) -> None:
    """Also where Snakemake has no memory of it, which would tell."""
    split = copy.output / "splits/mini/seed0.safetensors"
    shutil.rmtree(copy.directory / ".snakemake")
    Split.load(split).save(split, "0" * 64)
    assert copy.jobs("tables").items() >= {"split": 1, "classify": 3}.items()


def test_an_edited_record_is_one_sentence(copy: Workspace) -> None:
    copy.run("publish")
    path = copy.directory / "records" / "quick" / f"{FEDAVG}.json"
    content = read_result(path)
    content["result"]["accuracy"]["best"] = 84.0
    write_json(path, content)
    printed = copy.run("tables", "--dry-run", fails=True)
    assert f"records/quick/{FEDAVG}.json carries no digest of its content" in printed
    assert "Traceback" not in printed
    write_result(path, content)  # even with a digest, an accuracy is a share
    shutil.rmtree(copy.output / "tables")
    printed = copy.run("tables", fails=True)
    assert "holds no result of a run (result.accuracy.best: Input should be less than or equal to 1)" in printed
    assert not (copy.output / "tables" / "accuracy.csv").exists()
