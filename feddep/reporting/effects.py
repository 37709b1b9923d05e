"""How large differences from FedAvg are: with their intervals, and in units of their own spread."""

import numpy as np
import pandas as pd
from scipy.special import gammaln

from feddep.reporting import markdown as md
from feddep.reporting.comparisons import MIN_SEEDS
from feddep.reporting.frames import records
from feddep.reporting.labels import method_title
from feddep.reporting.undertrained import mark, note

COLUMNS = [
    *("setting", "dataset", "clients", "method", "reference", "seeds"),
    *("mean_difference", "low", "high", "d_z", "g_z", "undertrained"),
]
_NOTES = """\
Difference of test accuracy (at the round that is best on validation nodes) from FedAvg's, paired by seed, with the 95 %
t-interval of its mean over the seeds; and in brackets its standardised effect g_z.

- d_z: the mean difference over the sample standard deviation of the differences (Cohen 1988); t of the paired test is d_z √n.
  From n seeds it is too large by a factor that is 1.77 for n = 3. g_z is free of that: d_z Γ((n − 1)/2) / (Γ((n − 2)/2) √((n −
  1)/2)) (Hedges 1981). Both are in `effects.csv`.
- A large effect may be a small difference: seeds that agree to the fourth digit make any difference many standard deviations.
- The seeds redraw split and partition of one graph; see `comparisons.csv` for p-values.
"""


def effects(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The effect sizes of the main tables.

    Args:
        comparisons: as :func:`feddep.reporting.comparisons.against_reference` gives it.

    Returns:
        The columns :data:`COLUMNS`, a row a row of ``comparisons``: the mean difference with its 95 % t-interval; d_z, it over
        the sample standard deviation of the differences, and g_z, the same without bias, both NaN where there is no interval;
        undertrained: share of the runs.
    """
    degrees = (comparisons["seeds"] - 1).clip(lower=MIN_SEEDS - 1).astype(float)
    d_z = (comparisons["mean_difference"] / comparisons["std_difference"]).where(comparisons["low"].notna())
    unbiased = np.exp(gammaln(degrees / 2) - gammaln((degrees - 1) / 2)) / np.sqrt(degrees / 2)
    return comparisons.assign(d_z=d_z, g_z=d_z * unbiased)[COLUMNS]


def markdown(table: pd.DataFrame) -> str:
    """A section a setting and dataset: a line a method, a column a number of clients."""
    body = md.sections(table, _block)
    explained = f"- {note(body)}\n" if note(body) else ""
    return f"# Effect sizes\n\n{_NOTES}{explained}\n{body}"


def _block(block: pd.DataFrame) -> str:
    clients = sorted(block["clients"].unique())
    lines = []
    for method, rows in block.groupby("method", sort=False):
        cells = {row["clients"]: _cell(row) for row in records(rows)}
        lines.append([method_title(str(method)), *(cells.get(m, "") for m in clients)])
    return md.table(["", *(f"M={m}" for m in clients)], lines)


def _cell(row: dict) -> str:
    effect = "" if row["g_z"] is None else f" ({row['g_z']:+.2f})"
    return md.interval(row["mean_difference"], row["low"], row["high"]) + effect + mark(row["undertrained"])
