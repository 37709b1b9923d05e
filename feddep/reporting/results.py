"""All that tables, figures and the report show, read once from the finished runs of a configuration."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.config.loading import Config
from feddep.reporting import (
    accuracy,
    comparisons,
    costs,
    effects,
    main_figures,
    main_table,
    partitions,
    provenance_summary,
    ranks,
    runs,
)


@dataclass(frozen=True)
class Results:
    """What a configuration's runs measured.

    Attributes:
        config: the resolved configuration.
        finished: its runs.
        accuracy: see :func:`feddep.reporting.accuracy.summarise`.
        comparisons: see :func:`feddep.reporting.comparisons.against_reference`.
        costs: see :func:`feddep.reporting.costs.summarise`.
        partitions: see :func:`feddep.reporting.partitions.summarise`.
    """

    config: Config
    finished: list[runs.FinishedRun]
    accuracy: pd.DataFrame
    comparisons: pd.DataFrame
    costs: pd.DataFrame
    partitions: pd.DataFrame

    @cached_property
    def main_tables(self) -> list[main_table.MainTable]:
        """One a setting."""
        return main_table.main_tables(self.accuracy, self.comparisons)

    @cached_property
    def rankings(self) -> list[ranks.Ranking]:
        """One a setting."""
        return ranks.rank(self.accuracy)

    def tables(self) -> dict[str, Any]:
        """The contents of every table and of the provenance, by file name, for :func:`feddep.reporting.files.write`."""
        sizes = effects.effects(self.comparisons)
        return {
            **{f"{name}.csv": getattr(self, name) for name in ("accuracy", "comparisons", "costs", "partitions")},
            "effects.csv": sizes,
            "effects.md": effects.markdown(sizes),
            "ranks.csv": ranks.table(self.rankings),
            "ranks.md": ranks.markdown(self.rankings),
            "accuracy.md": main_table.markdown(self.main_tables),
            "accuracy.tex": main_table.latex(self.main_tables),
            "costs.md": costs.markdown(self.costs),
            "partitions.md": partitions.markdown(self.partitions),
            "provenance.json": provenance_summary.summarise(self.config, self.finished),
        }

    def figures(self) -> dict[str, Figure]:
        """Every figure by its name: ``accuracy_SETTING`` and ``curves_SETTING`` of each setting, and ``partitions``."""

        def of_settings(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
            return [(name, table[table["setting"] == name]) for name in dict.fromkeys(map(str, table["setting"]))]

        return {
            **{f"accuracy_{name}": main_figures.accuracy(rows) for name, rows in of_settings(self.accuracy)},
            **{f"curves_{name}": main_figures.curves(rows) for name, rows in of_settings(runs.curves(self.finished))},
            "partitions": main_figures.partitions(self.partitions),
        }

    def rank_figures(self) -> dict[str, Figure]:
        """The diagram of average ranks of each setting, by its name."""
        return {f"ranks_{one.setting}": ranks.figure(one) for one in self.rankings}

    def printed(self) -> str:
        """The main tables for the terminal."""
        return main_table.terminal(self.main_tables, self.accuracy["seeds"].tolist())


def collect(config: Config) -> Results:
    """Read the results of a configuration.

    Raises:
        DataError: if a run or partition is missing, damaged or stale.
    """
    finished = runs.load(config)
    table = runs.table(finished)
    summary = accuracy.summarise(table)
    return Results(
        config=config,
        finished=finished,
        accuracy=summary,
        comparisons=comparisons.against_reference(table, summary),
        costs=costs.summarise(finished),
        partitions=partitions.summarise(partitions.load(config)),
    )
