"""The recorded runs as a table: what its columns are, and that it agrees with the tables of
studies.
"""

from pathlib import Path

import pandas as pd
import pytest

from feddep import api
from feddep.reporting import results
from feddep.utils.errors import ConfigError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def field() -> pd.DataFrame:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return api.results("field")


def test_columns_are_those_of_the_schema(field: pd.DataFrame):
    schema = results.schema()
    assert list(field) == [name for name in schema if name in field]
    assert {name: str(field.dtypes[name]) for name in field} == {
        name: schema[name].type for name in field
    }
    assert all(column.meaning for column in schema.values())
    assert not field.duplicated(["study", "key"]).any()
    assert field["partition.method"].isna().equals(field["clients"].isna())


def test_accuracies_are_those_of_a_study(field: pd.DataFrame):
    final = field[(field["study"] == "field_tuned") & (field["role"] == results.FINAL)]
    names = ["dataset", "method"]
    means = final.groupby(["dataset_label", "method"])["accuracy"].agg(["mean", "size"])
    table = pd.read_csv(ROOT / "results" / "field_tuned" / "table.csv").set_index(names)
    whole = means[means["size"] == table["seeds"].reindex(means.index)].rename_axis(names)
    assert len(whole) > 100
    reported = table["mean"].reindex(whole.index)
    assert whole["mean"].to_dict() == pytest.approx(reported.to_dict(), rel=1e-5)


def test_what_was_chosen_joins_with_its_runs(field: pd.DataFrame):
    choices = pd.read_csv(ROOT / "results" / "field_tuned" / "choices.csv")
    tuned = field[field["study"] == "field_tuned"].merge(
        choices,
        left_on=["dataset_label", "setting_label", "method_label"],
        right_on=["dataset", "chosen_setting", "chosen_method"],
    )
    by_role = tuned.groupby("role")["seed"].unique().map(set)
    assert by_role[results.SEARCH] == {20}
    assert 20 not in by_role[results.FINAL]


def test_curves_are_of_every_round(field: pd.DataFrame):
    some = field.head(3)
    curves = api.curves("field", list(some["key"]), ROOT / "config" / "default.yaml")
    assert curves.groupby("key").size().to_dict() == dict(
        zip(some["key"], some["rounds"], strict=True)
    )


def test_a_protocol_that_is_not_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(ConfigError, match="fedsage"):
        api.results("fedsages")
