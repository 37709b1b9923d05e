"""Every published number beside ours: which run it is of, and when the two agree."""

import math

import pandas as pd
import pytest
from fabricated import Results
from feddep.stages import write_agreement

from feddep.config.loading import validate
from feddep.experiment import plan
from feddep.reporting import agreement, published


def test_every_published_accuracy_is_there(results: Results) -> None:
    numbers = published.every_accuracy()
    with published.resources.files("feddep.reporting").joinpath("published", "accuracy.csv").open() as file:
        assert len(numbers) == len(file.readlines()) - 1
    table = agreement.compare(results.config)
    assert len(table) == len(numbers)
    key = ["paper", "table", "dataset", "clients", "method", "setting", "published_mean"]
    theirs = numbers.rename(columns={"mean": "published_mean"})[key]
    assert sorted(map(str, table[key].values.tolist())) == sorted(map(str, theirs.values.tolist()))


def test_ours_is_of_the_papers_setting(results: Results) -> None:
    table = agreement.compare(results.config)
    known = table[table["seeds"] > 0]
    # The configuration has no setting fedsage; FedAvg stands in two tables of the FedDEP paper, for 5 and for 10 clients.
    assert set(known["paper"]) == {"feddep"}
    assert known["method"].tolist().count("fedavg") == 4
    line = known[(known["method"] == "fedavg") & (known["clients"] == 5) & (known["table"] == "table2")].iloc[0]
    assert line[["published_mean", "published_std", "seeds"]].tolist() == [0.8555, 0.014, 3]
    assert line[["mean", "std", "difference"]].tolist() == pytest.approx([0.86, 0.01, 0.0045])
    assert line["combined_std"] == pytest.approx(math.hypot(0.01, 0.014))
    assert line["agrees"]
    others = table[table["seeds"] == 0]
    assert others[["mean", "std", "difference", "agrees", "undertrained"]].isna().all(axis=None)


def test_variants_are_spelled_as_the_plan_spells_them() -> None:
    sweep = {"datasets": {"cora": {}}, "methods": {"feddep": {"prototypes": [3, 15]}}}
    batches = {"settings": {"fedsage": {"batch_size": [16, 64]}}, "datasets": {"pubmed": {}}, "methods": {"fedavg": {}}}
    config = validate(
        {
            "datasets": {"cora": {}, "pubmed": {}},
            "clients": [5],
            "seeds": [0, 7],
            "settings": {"feddep": {}, "fedsage": {"batch_size": 64}},
            "methods": {"feddep": {"prototypes": 15}, "fedavg": {}},
            "tables": [{"setting": "feddep", "datasets": ["cora"], "methods": ["fedavg"]}],
            "studies": [{"name": name, "kind": "sweep", "runs": [block]} for name, block in (("c", sweep), ("b", batches))],
        }
    )
    found = agreement.runs_of(config)
    names = {(run.setting, run.dataset, run.method) for run in found}
    assert names == {
        ("feddep", "cora", "fedavg"),
        ("feddep", "cora", "feddep"),
        ("feddep", "cora", "feddep,prototypes=3"),
        ("fedsage", "pubmed", "fedavg"),
        ("fedsage,batch_size=16", "pubmed", "fedavg"),
    }
    assert {run.seed for run in found} == {0, 7}
    assert set(found) <= set(plan.all_runs(config))


@pytest.mark.parametrize(
    ("mean", "std", "agrees"),
    [
        (0.85, 0.03, True),
        (0.90, 0.03, True),
        (0.901, 0.03, False),
        (0.749, 0.03, True),
        (0.71, 0.0, False),
        (0.8, math.nan, None),
    ],
)
def test_two_combined_deviations(mean: float, std: float, agrees: bool | None) -> None:
    # Theirs is 0.8 ± 0.04, so that with 0.03 the combined deviation is 0.05.
    row = {"mean": mean, "std": std, "published_mean": 0.8, "published_std": 0.04}
    verdict = agreement.judged(pd.DataFrame([row]))["agrees"].iloc[0]
    assert (None if pd.isna(verdict) else bool(verdict)) is agrees


def test_the_page_counts(results: Results) -> None:
    table = agreement.compare(results.config)
    page = agreement.markdown(table)
    fedavg, _ = [line for line in page.splitlines() if line.startswith("| FedAvg") and "without ours" in line]
    known = table[(table["paper"] == "feddep") & (table["method"] == "fedavg") & (table["dataset"] == "cora")]
    agreeing, judged = int(known["agrees"].sum()), int(known["agrees"].notna().sum())
    assert (agreeing, judged, len(known)) == (4, 4, 6)
    assert fedavg.split("|")[2].strip() == "4 of 4, 2 without ours"
    assert "87 numbers" in page
    assert len(published.vesper()) == 87


def test_the_stage(results: Results, tmp_path) -> None:
    from feddep.__main__ import main

    output = tmp_path / "made"
    flags = ["--config", str(results.root / "config.json"), "--output", str(output)]
    assert main([write_agreement.COMMAND, *flags]) == 0
    assert {path.name for path in output.iterdir()} == {"reproduction.csv", "reproduction.md", "reproduction.sha256"}
    assert len(pd.read_csv(output / "reproduction.csv")) == len(published.every_accuracy())
