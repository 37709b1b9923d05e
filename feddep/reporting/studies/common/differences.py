"""Differences between runs that share all but one thing, paired by seed."""

import numpy as np
import pandas as pd
from scipy import stats

from feddep.reporting.comparisons import MIN_SEEDS, paired_t_test

PLACE = ["setting", "dataset", "clients"]


def paired(ours: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Test accuracy of one framework less that of another, wherever both have a run.

    Args:
        ours, reference: rows of :attr:`feddep.reporting.studies.common.study.Study.runs`, at most one a setting, dataset,
            clients and seed.

    Returns:
        setting, dataset, clients, seed and difference.  A framework that sees the whole graph is paired with the other at
        each number of clients.
    """
    shared = ["setting", "dataset", "seed"]
    both = ours[[*PLACE, "seed", "best"]].merge(reference[[*PLACE, "seed", "best"]], on=shared, suffixes=("", "_reference"))
    here, there = both["clients"], both["clients_reference"]
    both = both[here.isna() | there.isna() | (here == there).fillna(False)]
    both = both.assign(
        clients=both["clients"].fillna(both["clients_reference"]), difference=both["best"] - both["best_reference"]
    )
    return both[[*PLACE, "seed", "difference"]]


def t_test(difference: np.ndarray) -> dict[str, float]:
    """As :func:`feddep.reporting.comparisons.paired_t_test`, with the number of pairs as n."""
    result = paired_t_test(difference)
    return {"n": result.pop("seeds"), **result}


def wilcoxon(difference: np.ndarray) -> float:
    """p of Wilcoxon's signed-rank test, two-sided; NaN where :func:`t_test` has none."""
    if len(difference) < MIN_SEEDS or np.ptp(difference) < 1e-12:
        return float("nan")
    return float(stats.wilcoxon(difference).pvalue)
