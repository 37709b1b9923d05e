"""Every accuracy that FedDEP's and FedSage's tables print beside ours: how far apart, and whether
the two agree.
"""

import pandas as pd

from feddep.config import variants
from feddep.config.loading import Config
from feddep.experiment import runs
from feddep.reporting import load, published
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order
from feddep.reporting.labels import dataset_title, method_title, sort_datasets, sort_methods
from feddep.reporting.statistics import FLAWS

DEVIATIONS = 2
"""How many combined standard deviations apart two numbers may be and still agree."""
COLUMNS = [
    *("paper", "table", "dataset", "clients", "method", "setting"),
    *(
        "published_mean",
        "published_std",
        "seeds",
        "mean",
        "std",
        "difference",
        "combined_std",
        "agrees",
        *FLAWS,
    ),
]
_NOTES = f"""\
## Every published number beside ours

Each number of the tables of FedDEP and FedSage, as printed, and ours of the same graph, number of
clients, method and option, in the setting of the same name, trained with the seeds of the
configuration; at the round that is best on validation nodes.

- *agrees*: the two means are at most {DEVIATIONS} combined standard deviations apart, √(ours² +
  theirs²), those of single runs. That is generous where runs scatter, and strict where both hardly
  do. Neither paper says which standard deviation it prints; ours are sample standard deviations
  over seeds. For Local and LocSage+ theirs seem to be over the clients, too, ours are not.
- Splits and partitions of the papers are not published: theirs are others than ours.
- *–*: the configuration asks for no such run. What a paper prints in two tables counts in both.
- VESPER's Table 3, {{count}} numbers, is not among these. It is of {{datasets}}; Finance is not
  public, and its numbers are areas under the ROC curve. Nor could its columns be matched: for a
  privacy budget the paper gives neither the noise that it used nor which of the degree bounds that
  it tried, and the account that both follow from does not hold (docs/results/vesper.md), so the
  same ε need not be the same noise. A study of the kind `tradeoff` on one of the other two graphs
  sets the printed numbers beside ours, without a verdict.

"""


def compare(config: Config) -> pd.DataFrame:
    """All published numbers beside ours.

    Returns:
        The columns :data:`COLUMNS`, in the papers' order: paper, table, and what the number is of,
        setting and method as variants name them; published_mean and published_std; seeds, mean and
        std, ours over the seeds, NaN where there is no such run; difference, ours less theirs;
        combined_std, the root of the sum of squares of both standard deviations; agrees: whether
        the difference is at most :data:`DEVIATIONS` times that, NA without ours or its standard
        deviation; undertrained and stalled: shares of our runs.

    Raises:
        DataError: if a run has not been trained, or a file is damaged.
    """
    numbers, planned = published.every_accuracy(), published.planned_runs(config)
    places = {run: place for place, run in enumerate(planned)}
    ours = load.tidy(runs.load(config, planned))
    found = [
        ours.iloc[[places[run] for run in those]] for those in published.runs_like(config, numbers)
    ]
    numbers = numbers.rename(columns={"mean": "published_mean", "std": "published_std"}).assign(
        seeds=[len(those) for those in found],
        mean=[those["test"].mean() for those in found],
        std=[those["test"].std() for those in found],
        **{flaw: [those[flaw].astype(float).mean() for those in found] for flaw in FLAWS},
    )
    judged = judge(numbers)
    # Papers and tables as they are printed; within a table datasets, methods and numbers of clients
    # in the papers' order.
    blocks = (in_paper_order(block) for _, block in judged.groupby(["paper", "table"], sort=False))
    return pd.concat(blocks, ignore_index=True)[COLUMNS]


def judge(numbers: pd.DataFrame) -> pd.DataFrame:
    """The table with difference, combined_std and agrees, from the means and standard deviations of
    both.
    """
    difference = numbers["mean"] - numbers["published_mean"]
    combined = (numbers["std"] ** 2 + numbers["published_std"] ** 2) ** 0.5
    agrees = (difference.abs() <= DEVIATIONS * combined).astype("boolean").mask(combined.isna())
    return numbers.assign(difference=difference, combined_std=combined, agrees=agrees)


def markdown(table: pd.DataFrame) -> str:
    """How many agree, by paper, method and dataset; then every number, a section a paper and
    table.
    """
    vesper = published.vesper()["dataset"]
    parts = [_NOTES.format(count=len(vesper), datasets=", ".join(dict.fromkeys(vesper)))]
    known = table.dropna(subset="agrees").assign(base=table["method"].map(variants.base))
    for paper, block in known.groupby("paper", sort=False):
        datasets = {dataset_title(name): name for name in sort_datasets(block["dataset"])}
        cells: dict[tuple[tuple[str, ...], str], str] = {}
        for method, title in [
            *((name, method_title(name)) for name in sort_methods(block["base"])),
            (None, "all"),
        ]:
            of = block if method is None else block[block["base"] == method]
            for heading, here in [
                *((title, of[of["dataset"] == name]) for title, name in datasets.items()),
                ("all", of),
            ]:
                cells[(title,), heading] = (
                    f"{int(here['agrees'].sum())} of {len(here)}" if len(here) else ""
                )
        parts += [
            f"### {published.PAPERS[str(paper)]}: how many agree\n",
            md.table(*md.grid(cells, [*datasets, "all"])),
        ]
    columns = [
        "dataset",
        "clients",
        "method",
        "setting",
        "published_mean",
        "mean",
        "difference",
        "combined_std",
        "agrees",
    ]
    return "\n".join([*parts, md.shown(table, columns, ["paper", "table"], 3)])
