"""The numbers that papers print, for tables that have them beside ours.

A folder ``studies/PAPER/published`` of the working folder may have two tables, with one line a
number as it is printed:

* ``accuracy.csv``: test accuracies in [0, 1], those of the paper's main table first; title, what
  our tables call the paper; table; dataset; clients, empty where a method sees the whole graph;
  setting and method, as variants name them (:mod:`feddep.config.variants`); mean; std;
* ``partitions.csv``: graphs and their partitions, see :func:`feddep.reporting.main.partitions`.
"""

from collections.abc import Collection

import pandas as pd

from feddep.config import variants
from feddep.config.loading import STUDIES
from feddep.reporting.labels import changes_of

OURS = "ours"
"""How tables call this project's numbers where a paper's stand beside them."""
_COLUMNS = ["paper", "title", "table", "dataset", "clients", "setting", "method", "mean", "std"]


def read(name: str) -> pd.DataFrame:
    """A table of all papers with their column paper, the name of the folder; without rows where no
    paper has it.
    """
    found = [
        pd.read_csv(path, dtype={"clients": "Int64"}).assign(paper=path.parts[-3])
        for path in sorted(STUDIES.glob(f"*/published/{name}.csv"))
    ]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=_COLUMNS)


def papers() -> dict[str, str]:
    """The papers whose accuracies are known, and what tables call them."""
    numbers = read("accuracy")
    return dict(zip(numbers["paper"], numbers["title"], strict=True))


def main_tables() -> pd.DataFrame:
    """The accuracies of each paper's main table."""
    numbers = read("accuracy")
    return numbers[numbers["table"] == numbers.groupby("paper")["table"].transform("first")]


def sweep(option: str, part: str) -> pd.DataFrame:
    """The accuracies of tables over an option of a ``method`` or ``setting``; without rows where no
    paper has one.

    Returns:
        Columns paper, dataset, clients, method, value (NA for a method that has no such option),
        mean, std.
    """
    numbers = read("accuracy")
    changes = [changes_of(spelled).get(option) for spelled in numbers[part]]
    numbers = numbers.assign(
        method=numbers["method"].map(variants.base), value=pd.Series(changes, dtype="Int64")
    )
    over = numbers["value"].notna().groupby([numbers["paper"], numbers["table"]]).transform("any")
    return numbers.loc[over, ["paper", "dataset", "clients", "method", "value", "mean", "std"]]


def of_methods(methods: Collection[str]) -> pd.DataFrame:
    """The accuracies of tables that have these methods and no other."""
    numbers = read("accuracy")
    alike = numbers.groupby(["paper", "table"])["method"].transform(
        lambda of: set(of) == set(methods)
    )
    return numbers[alike.astype(bool)]


def beside(ours: pd.DataFrame, theirs: pd.DataFrame, on: list[str]) -> pd.DataFrame:
    """A table with two more columns for each paper of the other, such as ``paper_feddep_mean``; NaN
    where it has no such number.
    """
    for paper in dict.fromkeys(theirs["paper"]):
        numbers = theirs.loc[theirs["paper"] == paper, [*on, "mean", "std"]]
        names = {name: f"paper_{paper}_{name}" for name in ("mean", "std")}
        ours = ours.merge(numbers.rename(columns=names), how="left", on=on)
    return ours
