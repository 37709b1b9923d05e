"""Rows of a data frame: as plain dictionaries, and in the papers' order."""

from typing import Any

import pandas as pd

from feddep.reporting.labels import sort_datasets, sort_frameworks


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """One dictionary a row, in order; what is not known (NaN, NA) is None."""
    return [{str(key): None if _unknown(value) else value for key, value in row.items()} for row in table.to_dict("records")]


def in_paper_order(summary: pd.DataFrame) -> pd.DataFrame:
    """The rows by setting, as they come, then by dataset, framework and number of clients in the papers' order; index anew."""
    order = pd.DataFrame(
        {
            "setting": summary["setting"].map(list(dict.fromkeys(summary["setting"])).index),
            "dataset": summary["dataset"].map(sort_datasets(summary["dataset"]).index),
            "framework": summary["framework"].map(sort_frameworks(summary["framework"]).index),
            "clients": summary["clients"].fillna(0),
        }
    )
    return summary.loc[order.sort_values(list(order.columns)).index].reset_index(drop=True)


def _unknown(value: Any) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))
