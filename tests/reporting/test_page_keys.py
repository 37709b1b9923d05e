"""What pages are known by: the same as long as they show the same, and that of the configuration where git keeps them."""

from copy import deepcopy
from typing import Any

from feddep.utils.checksum_lists import find_mismatch

from feddep.config.loading import load, validate
from feddep.reporting import page_keys
from workspace import CONFIG as MINI
from workspace import REPOSITORY

RUNS: list[dict[str, Any]] = [{"methods": {"fedavg": {}}}]
CONFIG: dict[str, Any] = {
    **MINI,
    "methods": {"global": {}, "fedavg": {}},
    "tables": [{**MINI["tables"][0], "methods": ["global"]}],
    "studies": [{"name": "history", "kind": "curves", "runs": RUNS}, {"name": "alone", "kind": "sweep", "runs": RUNS}],
}


def changed(**changes: Any) -> set[str]:
    """The lists whose key another configuration changes."""
    before, after = (page_keys.shown_keys(validate(deepcopy(config))) for config in (CONFIG, CONFIG | changes))
    return {path.as_posix() for path in before if before[path] != after[path]}


def test_a_page_has_another_key_where_it_shows_something_else() -> None:
    tables = {"out/tables/tables.sha256", "out/figures/figures.sha256", "out/report/report.sha256"}
    history = {"out/studies/history/study.sha256", "out/studies/history/rounds.sha256"}
    assert changed() == set()
    assert changed(jobs_per_gpu=2) == set()
    assert changed(tables=[{**CONFIG["tables"][0], "methods": ["fedavg"]}]) == tables
    assert changed(studies=[{**CONFIG["studies"][0], "title": "Course"}, CONFIG["studies"][1]]) == history
    everything = tables | history | {"out/studies/alone/study.sha256", "out/tables/reproduction.sha256"}
    assert changed(seeds=[0, 1]) == everything


def test_the_pages_that_git_keeps_show_what_its_configuration_asks_for() -> None:
    lists = page_keys.shown_keys(load(REPOSITORY / "config" / "config.yaml"))
    assert [problem for path, key in lists.items() if (problem := find_mismatch(REPOSITORY / path, key))] == []
