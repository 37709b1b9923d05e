"""From runs to pages: tables of a run as files, all of them as a page, by the rules of the
workflow.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small import DGEN, NEIGHGEN, case_of, measured, of_run, page, small_task

from feddep.utils.errors import ConfigError, DataError
from studies.feddep.label_shortcut.page import _CLASSIFIER, _PROTOTYPE
from studies.measuring import read_measured, tables_of
from workspace import REPOSITORY, STEPS, Workspace

METHODS: dict[str, dict[str, Any]] = {
    "quality": {"feddep": {}},
    "label_shortcut": {"feddep": {"prototypes": 4}},
    "neighbourhoods": {"fedsage_plus": {"hidden_share": [0.1, 0.15]}},
    "label_distributions": {"global": {}, "fedavg": {}},
    "degree_histograms": {"vertical_mlp": {}},
    "vertical_attacks": {"vertical_gin": {}, "vesper_gin": {"theta": [0.0, 0.5]}},
    "overhead": {"fedsage_plus": {}, "feddep_wo_proto": {}, "feddep": {}},
    "privacy_audit": {"local": {}, "fedavg": {}},
    "client_privacy": {"fedgnn": {}},
}
CHANGES: dict[str, Any] = {
    "settings": {"quick": {"rounds": 1, "batch_size": 16}},
    "methods": {"feddep": DGEN, "feddep_wo_proto": DGEN, "fedsage_plus": NEIGHGEN},
    "tables": [{"setting": "quick", "datasets": ["mini"], "methods": ["global"]}],
    "studies": [
        {"name": name, "kind": name, "runs": [{"methods": methods}]}
        for name, methods in METHODS.items()
    ],
}
DIVIDED = {"prepare": 1, "split": 1, "partition": 1}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(tmp_path)
    found.configure(**CHANGES)
    (tmp_path / "studies").symlink_to(REPOSITORY / "studies")
    return found


@pytest.mark.dag
@pytest.mark.parametrize(
    ("studies", "expected"),
    [
        (
            ["quality", "vertical_attacks", "client_privacy"],
            {**DIVIDED, "pretrain": 1, "prototypes": 1, "measure": 1 + 3 + 1},
        ),
        (
            ["label_shortcut", "neighbourhoods", "label_distributions"],
            {**DIVIDED, **dict.fromkeys(STEPS, 1), "generator": 1 + 2, "train": 3, "measure": 5},
        ),
    ],
)
def test_a_study_needs_what_it_reads(
    studies: list[str], expected: dict[str, int], workspace: Workspace
):
    """Studies at a time of which each is of other methods."""
    assert workspace.planned(*studies) == {**expected, **dict.fromkeys(studies, 1)}


@pytest.mark.dag
def test_pages_are_made_of_what_is_measured(workspace: Workspace):
    """The files of each page, without which Snakemake fails; and nothing of it is made unasked."""
    workspace.run("degree_histograms")
    table = pd.read_csv(workspace.folder / "out" / "degree_histograms" / "table.csv")
    assert table[["dataset", "of"]].drop_duplicates().to_numpy().tolist() == [["mini", 60]]
    (file,) = (workspace.cache / "degree_histograms").glob("*.json")
    file.write_text(file.read_text().replace("mini", "maxi"))
    with pytest.raises(DataError, match=file.name):
        read_measured(file)
    assert not (workspace.cache / "partitions").exists()
    assert not {*METHODS, "measure"} & workspace.planned().keys()


NUMBERS = (
    *(
        "generated",
        "filled",
        "count_error",
        "count_correlation",
        "explained",
        "explained_filled",
        "explained_empty",
        "correct",
    ),
    *(
        "budget",
        "theta",
        "low",
        "most",
        "promised_certified",
        "promised_rdp",
        "accuracy_inside",
        "accuracy_outside",
    ),
    *("membership_auc", "entropy_auc", "edge_auc"),
)
KINDS = {
    "quality": [
        {"guess": name}
        for name in ("DGen", "zero", "mean prototype", "own prototype", "least loss")
    ],
    "label_shortcut": [
        {"reader": reader, "input": source, "nodes": nodes}
        for reader, source, nodes in (*_PROTOTYPE.values(), *_CLASSIFIER.values())
    ],
    "vertical_attacks": [{}],
}


@pytest.mark.parametrize("name", KINDS)
def test_a_page_has_means_over_seeds(name: str):
    """Two seeds whose numbers differ by 0.2."""
    kinds, numbers = KINDS[name], [dict.fromkeys(NUMBERS, value) for value in (0.6, 0.8)]
    both = [
        {**of_run(seed=seed), "client": 0, "hidden": "anew", "count": 1, **numbers[seed]}
        for seed in (0, 1)
    ]
    rows = [{**row, **kind} for row in both for kind in kinds]
    made = page(name, **{name: rows})
    assert len(made["table.csv"]) == len(kinds)
    assert made["table.csv"]["seeds"].eq(2).all()
    assert "0.7000 ± 0.1414" in made["page.md"]


def test_numbers_have_six_digits_and_a_method_without_generators_is_refused():
    rows = measured("quality", case_of("feddep", small_task(), **DGEN)).select_dtypes(float)
    assert rows.size > 0
    assert rows.map(lambda value: np.isnan(value) or value == float(f"{value:.6g}")).all(axis=None)
    with pytest.raises(ConfigError):
        tables_of("quality", case_of("fedavg", small_task()))
