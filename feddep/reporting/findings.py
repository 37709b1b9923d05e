"""All that the tables, figures and the report show, read once from the finished runs of a configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from feddep.reporting import accuracy, comparisons, costs, grid, partitions, runs


@dataclass(frozen=True)
class Findings:
    """What a configuration's runs measured.

    Attributes:
        config: the resolved configuration.
        finished: its runs.
        accuracy: see :func:`feddep.reporting.accuracy.summarise`.
        comparisons: see :func:`feddep.reporting.comparisons.against_reference`.
        costs: see :func:`feddep.reporting.costs.summarise`.
        partitions: see :func:`feddep.reporting.partitions.summarise`.
    """

    config: Mapping[str, Any]
    finished: list[runs.FinishedRun]
    accuracy: pd.DataFrame
    comparisons: pd.DataFrame
    costs: pd.DataFrame
    partitions: pd.DataFrame

    @property
    def curves(self) -> pd.DataFrame:
        """See :func:`feddep.reporting.runs.curves`."""
        return runs.curves(self.finished)

    def grids(self, selection: str) -> list[grid.Grid]:
        """See :func:`feddep.reporting.grid.grids`."""
        return grid.grids(self.accuracy, self.comparisons, selection)


def collect(config: Mapping[str, Any]) -> Findings:
    """Read the results of a configuration.

    Raises:
        DataError: if a run or partition is missing, damaged or stale.
    """
    finished = runs.load(config)
    table = runs.table(finished)
    summary = accuracy.summarise(table)
    return Findings(
        config=config,
        finished=finished,
        accuracy=summary,
        comparisons=comparisons.against_reference(table, summary),
        costs=costs.summarise(finished),
        partitions=partitions.summarise(partitions.load(config)),
    )
