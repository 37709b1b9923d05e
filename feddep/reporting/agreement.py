"""Every accuracy that FedDEP's and FedSage's tables print beside ours: how far apart, and whether the two agree."""

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd

from feddep.config import variants
from feddep.config.loading import Config, variations
from feddep.experiment import plan
from feddep.reporting import markdown as md
from feddep.reporting import published, runs
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import dataset_title, method_title, sort_datasets, sort_methods
from feddep.reporting.undertrained import mark, note

DEVIATIONS = 2
"""How many combined standard deviations apart two numbers may be and still agree."""
COLUMNS = [
    *("paper", "table", "dataset", "clients", "method", "setting"),
    *("published_mean", "published_std", "seeds", "mean", "std", "difference", "combined_std", "agrees", "undertrained"),
]
_NOTES = f"""\
Each number of the tables of FedDEP and FedSage, as printed, and ours of the same graph, number of clients, method and option,
in the setting of the same name, trained with the seeds of the configuration; at the round that is best on validation nodes.

- *agrees*: the two means are at most {DEVIATIONS} combined standard deviations apart, √(ours² + theirs²), those of single runs.
  That is generous where runs scatter, and strict where both hardly do. Neither paper says which standard deviation it prints;
  ours are sample standard deviations over seeds. For Local and LocSage+ theirs seem to be over the clients, too, ours are not.
- Splits and partitions of the papers are not published: theirs are others than ours.
- *–*: the configuration asks for no such run. What a paper prints in two tables counts in both.
"""
_VESPER = """\
## VESPER

VESPER's Table 3, {count} numbers, is not among these. It is of {datasets}; Finance is not public, and its numbers are areas under
the ROC curve. Nor could its columns be matched: for a privacy budget the paper gives neither the noise that it used nor which of
the degree bounds that it tried, and the account that both follow from does not hold (docs/vesper.md), so that the same ε need not
be the same noise. A study of the kind `tradeoff` on one of the other two graphs sets the printed numbers beside ours, without a
verdict.
"""


def _runs(config: Config, numbers: pd.DataFrame) -> list[list[plan.Run]]:
    """For each published number the planned runs that are like it, one a seed; none where there are none."""
    planned = set(plan.all_runs(config))
    like = [_like(config, line) for line in records(numbers)]
    return [[run for seed in config["seeds"] if one and (run := replace(one, seed=seed)) in planned] for one in like]


def _like(config: Config, line: dict[str, Any]) -> plan.Run | None:
    """A run that a published number is of, as the plan spells it; None where the configuration lacks an entry."""
    if variants.base(line["setting"]) not in config["settings"] or line["dataset"] not in config["datasets"]:
        return None
    spelled = {}
    for part in ("setting", "method"):
        name, changes = variants.read(line[part])
        (spelled[part],) = variations(config, f"{part}s", {name: changes})
    return plan.Run(dataset=line["dataset"], clients=line["clients"], seed=0, **spelled)


def runs_of(config: Config) -> list[plan.Run]:
    """The runs of a configuration whose accuracy a paper prints, each once."""
    return _once(_runs(config, published.every_accuracy()))


def _once(found: list[list[plan.Run]]) -> list[plan.Run]:
    return list(dict.fromkeys(run for those in found for run in those))


def compare(config: Config) -> pd.DataFrame:
    """All published numbers beside ours.

    Returns:
        The columns :data:`COLUMNS`, in the papers' order: paper, table, and what the number is of, setting and method as
        variants name them; published_mean and published_std; seeds, mean and std, ours over the seeds, NaN where there is no
        such run; difference, ours less theirs; combined_std, the root of the sum of squares of both standard deviations; agrees:
        whether the difference is at most :data:`DEVIATIONS` times that, NA without ours or its standard deviation; undertrained:
        share of our runs.

    Raises:
        DataError: if a run has not finished, its file is damaged, or it was made from something else than is asked for now.
    """
    numbers = published.every_accuracy()
    like = _runs(config, numbers)
    ours = {run: records(runs.table([runs.load_one(config, run)]))[0] for run in _once(like)}
    found = [[ours[run] for run in those] for those in like]
    best = [np.array([line["best"] for line in lines]) for lines in found]
    numbers = numbers.rename(columns={"mean": "published_mean", "std": "published_std"}).assign(
        seeds=[len(values) for values in best],
        mean=[values.mean() if len(values) else math.nan for values in best],
        std=[values.std(ddof=1) if len(values) > 1 else math.nan for values in best],
        undertrained=[np.mean([line["undertrained"] for line in lines]) if lines else math.nan for lines in found],
    )
    return _in_order(judged(numbers))[COLUMNS]


def judged(numbers: pd.DataFrame) -> pd.DataFrame:
    """The table with difference, combined_std and agrees, from the means and standard deviations of both."""
    difference = numbers["mean"] - numbers["published_mean"]
    combined = (numbers["std"] ** 2 + numbers["published_std"] ** 2) ** 0.5
    agrees = (difference.abs() <= DEVIATIONS * combined).astype("boolean").mask(combined.isna())
    return numbers.assign(difference=difference, combined_std=combined, agrees=agrees)


def _in_order(numbers: pd.DataFrame) -> pd.DataFrame:
    """Papers and tables as they are printed; within a table datasets, methods and numbers of clients in the papers' order."""
    blocks = (in_paper_order(block) for _, block in numbers.groupby(["paper", "table"], sort=False))
    return pd.concat(blocks, ignore_index=True)


def markdown(table: pd.DataFrame) -> str:
    """How many agree, by paper, method and dataset; every number, a section a paper and table; and why VESPER's are not."""
    parts = ["# Every published number beside ours\n", _NOTES, "## How many agree\n"]
    for paper, block in table.groupby("paper", sort=False):
        parts += [f"### {published.PAPERS[str(paper)]}\n", _summary(block)]
    for place, block in table.groupby(["paper", "table"], sort=False):
        printed, name = map(str, cast(tuple, place))
        parts += [f"## {published.PAPERS[printed]}, {name.replace('_', ' ')}\n", _numbers(block)]
    vesper = published.vesper()
    datasets = ", ".join(dict.fromkeys(vesper["dataset"]))
    parts.append(_VESPER.format(count=len(vesper), datasets=datasets))
    text = "\n".join(parts)
    return text.replace(_NOTES, f"{_NOTES}- {note(text)}\n") if note(text) else text


def _summary(block: pd.DataFrame) -> str:
    """A line a method, its options left out, a column a dataset; ``2 of 3``, and how many there are if not all were run."""
    names = block["method"].map(variants.base)
    datasets = sort_datasets(block["dataset"])
    lines = []
    for name in sort_methods(names):
        rows = block[names == name]
        lines.append([method_title(name), *(_count(rows[rows["dataset"] == dataset]) for dataset in datasets), _count(rows)])
    lines.append(["all", *(_count(block[block["dataset"] == dataset]) for dataset in datasets), _count(block)])
    return md.table(["", *map(dataset_title, datasets), "all"], lines)


def _count(rows: pd.DataFrame) -> str:
    known = rows["agrees"].dropna()
    if not len(rows):
        return ""
    missing = len(rows) - len(known)
    return f"{int(known.sum())} of {len(known)}" + (f", {missing} without ours" if missing else "")


def _numbers(block: pd.DataFrame) -> str:
    lines = []
    for line in records(block):
        clients = "" if line["clients"] is None else str(line["clients"])
        theirs, ours = (md.plus_minus(line[f"{whose}mean"], line[f"{whose}std"]) for whose in ("published_", ""))
        verdict = {True: "yes", False: "no", None: "–"}[line["agrees"]]
        options = line["setting"].partition(",")[2]
        name = method_title(line["method"]) + (f", {options}" if options else "")
        difference = md.number(line["difference"], "+.4f") or "–"
        numbers = [theirs, (ours or "–") + mark(line["undertrained"]), difference, md.number(line["combined_std"], ".4f")]
        lines.append([dataset_title(line["dataset"]), clients, name, *numbers, verdict])
    return md.table(["", "M", "", "published", "ours", "ours − it", "combined deviation", "agrees"], lines)
