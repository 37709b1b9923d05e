"""Kind ``reproduction``: every number that FedDEP, FedSage and VESPER print in tables beside ours,
how far apart they are, and whether the two agree; those of VESPER stand alone.
"""

from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.config.loading import Config
from feddep.experiment.plan import Run, one_run
from feddep.reporting import figures, published
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import dataset_title, method_title, sort_datasets, sort_methods
from feddep.reporting.load import Study
from feddep.reporting.statistics import FLAWS
from studies.vesper.kinds.tradeoff import printed

DEVIATIONS = 2
"""How many combined standard deviations apart two numbers may be and still agree."""
COLUMNS = [
    *("paper", "table", "dataset", "clients", "method", "setting"),
    *("published_mean", "published_std", "seeds", "mean", "std"),
    *("difference", "combined_std", "agrees", *FLAWS),
]
VESPER = "vesper"
SHOWS = f"""\
Each number of the tables of FedDEP, FedSage and VESPER, as printed, and ours of the same graph,
number of clients, method and option, in the setting of the same name; at the round that is best on
validation nodes.

- *agrees*: the two means are at most {DEVIATIONS} combined standard deviations apart, √(ours² +
  theirs²), those of single runs. That is generous where runs scatter, and strict where both hardly
  do. Neither paper says which standard deviation it prints; ours are sample standard deviations
  over seeds. For Local and LocSage+ theirs seem to be over the clients, too, ours are not.
- Splits and partitions of the papers are not published: theirs are others than ours.
- *–*: the configuration asks for no such run. What a paper prints in two tables counts in both.
- VESPER's Table 3 cannot be told. Finance is not public, and its numbers are areas under the ROC
  curve. ogbn-products and Reddit are too large for two cores (config/vesper_public.yaml makes
  the runs on one with a network). Nor could its columns be matched: for a privacy budget the paper
  gives neither the noise that it used nor which of the degree bounds that it tried, and the account
  that both follow from does not hold (docs/results/vesper.md), so the same ε need not be the same
  noise. The study `vesper_published` sets the numbers of ogbn-products beside ours of a smaller
  graph of Amazon's products, without a verdict.
"""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """All published numbers beside ours.

    Returns:
        The columns :data:`COLUMNS`, in the papers' order: paper, table, and what the number is of,
        setting and method as variants name them; published_mean and published_std; seeds, mean and
        std, ours over the seeds, NaN where there is no such run; difference, ours less theirs;
        combined_std, the root of the sum of squares of both standard deviations; agrees: whether
        the difference is at most :data:`DEVIATIONS` times that, NA without ours or its standard
        deviation; unfinished and stalled: shares of our runs.  Last those of VESPER, with ε and the
        decoder as options of the method; ours would be of other graphs.
    """
    numbers = published.read("accuracy")
    places: dict[Run | None, list[int]] = {replace(run, seed=0): [] for run in study.plan}
    for place, run in enumerate(study.plan):
        places[replace(run, seed=0)].append(place)
    found = [
        study.runs.iloc[places.get(run_like(study.config, row), [])] for row in records(numbers)
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
    table = pd.concat([*blocks, _of_vesper()], ignore_index=True)
    return {"table": table.astype({"agrees": "boolean", "clients": "Int64"})[COLUMNS]}


def _of_vesper() -> pd.DataFrame:
    """VESPER's Table 3 in :data:`COLUMNS`, without ours."""
    numbers = printed().rename(columns={"mean": "published_mean", "std": "published_std"})
    decoder = (",decoder=" + numbers["decoder"]).fillna("")
    method = numbers["method"] + decoder + ",epsilon=" + numbers["epsilon"].astype(str)
    method = method.str.replace(",epsilon=inf", "")
    return numbers.assign(paper=VESPER, table="table3", setting=VESPER, method=method).reindex(
        columns=COLUMNS
    )


def run_like(config: Config, row: dict[str, Any]) -> Run | None:
    """A run that a published number is of, with the seed 0, as the plan spells it; None where the
    configuration lacks an entry.
    """
    if (
        variants.base(row["setting"]) not in config["settings"]
        or row["dataset"] not in config["datasets"]
    ):
        return None
    names = {part: row[part] for part in ("setting", "dataset", "method")}
    return one_run(config, clients=row["clients"], **names)


def judge(numbers: pd.DataFrame) -> pd.DataFrame:
    """The table with difference, combined_std and agrees, from the means and standard deviations of
    both.
    """
    difference = numbers["mean"] - numbers["published_mean"]
    combined = (numbers["std"] ** 2 + numbers["published_std"] ** 2) ** 0.5
    agrees = (difference.abs() <= DEVIATIONS * combined).astype("boolean").mask(combined.isna())
    return numbers.assign(difference=difference, combined_std=combined, agrees=agrees)


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """How many agree, by table, and by paper, method and dataset; then every number, a section a
    paper and table.
    """
    table, papers = tables["table"], {**published.papers(), VESPER: "VESPER paper"}
    printed_in = table["paper"].map(papers) + ", " + table["table"]
    counts = [
        [str(name), *(str(int(of.sum())) for of in (agrees, ~agrees, agrees.isna()))]
        for name, agrees in table["agrees"].groupby(printed_in, sort=False)
    ]
    parts = [
        "## How many agree\n",
        md.table(["table", "agree", "do not", "cannot be told"], counts, numbers=True),
    ]
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
            f"## {papers[str(paper)]}: how many agree\n",
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
    return "\n".join([*parts, md.shown(table, columns, ["paper", "table"])])


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a paper, a row a method: the mean of ours less theirs, with the least and the
    greatest.
    """
    table, papers = tables["table"].dropna(subset="agrees"), published.papers()
    panels: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for paper, block in table.groupby("paper", sort=False):
        of = block.groupby(block["method"].map(variants.base))["difference"]
        panels[papers[str(paper)]] = {
            method_title(name): {
                "": {"method": name, "mean": each.mean(), "low": each.min(), "high": each.max()}
            }
            for name in sort_methods(map(str, of.groups))
            for each in [of.get_group(name)]
        }
    title = f"{int(table['agrees'].sum())} of {len(table)} published accuracies agree with ours"
    label = "accuracy, ours − theirs: mean, least and greatest over a paper's tables"
    return figures.forests(f"{title}\n{study.title}", panels, label)
