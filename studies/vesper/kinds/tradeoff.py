"""Kind ``tradeoff``: accuracy over the privacy budget ε or the noise scale θ, as in VESPER's Table
1 and Figure 2 (a) to (c).

``options.stand_ins`` of a study names for a graph of the paper one of ours, whose accuracies stand
beside the paper's.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.config.loading import STUDIES
from feddep.datasets.public_graphs import REGISTRY
from feddep.reporting import figures
from feddep.reporting import markdown as md
from feddep.reporting.frames import in_paper_order, records
from feddep.reporting.labels import dataset_title, distinguishing, method_title, without
from feddep.reporting.load import Study
from feddep.reporting.statistics import FLAWS
from feddep.utils.errors import ConfigError
from studies.vesper.budgets import METHODS, budget

SHOWS = """\
Test accuracy, mean ± sample standard deviation over the seeds, at the round that is
best on validation nodes, over the privacy budget ε of an edge, or where no budget is given over the
noise scale θ.

- **Bold**: of the models with noise in a column, the one that is best on validation nodes; it need
    not be the best on test nodes.
- †: above the MLP, which sees no edge, by more than the MLP's standard deviation. Models with noise
  that are not are of no use: leaving the graph out costs no privacy.
- Where a method without noise has several lines, the † and the figure's horizontal lines are of the
  one that is best on validation nodes.
- θ: the standard deviation of the noise on each number of a row of norm 1. A budget's θ is the
  least that keeps it by the account that the method's option `accountant` names.
- *ε proven*: what the account `certified` (docs/results/vesper.md) proves for that θ and the same
  δ; ∞ where none is proven, as with weights that are trained through edges, neighbours that are
  sampled anew in every step, or degrees without noise.
- *ε by the paper's account*: by `rdp`, whose claim does not hold (docs/results/vesper.md); none for
rows that are released once.
"""
_NO_NOISE = {"epsilon": math.inf, "theta": 0.0}
"""By the options that may stand on the axis: the place of what has no noise."""
_OF_RUN = "of run: "
_SAID = [
    "epsilon",
    "seeds",
    "mean",
    "std",
    "last_mean",
    "validation_mean",
    *FLAWS,
    "theta",
    "delta",
    "guarantee",
]
_SAID += ["paper_epsilon", "bytes", "chosen", "above_mlp"]
_NOT_PRIVATE = ("vertical_mlp", "vertical_gin", "vertical_gcn")
"""The methods without noise, the MLP first."""


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """``table``: a row a dataset as it is spelled, method and choice of options; ``printed``, where
    one of the paper's numbers has ours beside it: all of them (:func:`beside`).

    Returns:
        In ``table``: of :meth:`feddep.reporting.load.Study.summary`, with epsilon, theta, delta,
        guarantee and paper_epsilon of :class:`studies.vesper.budgets.Budget`; chosen: whether it is
        the best on validation of what has noise, on the same dataset and with the same budget or θ,
        where there are several; above_mlp: whether it has noise, and its mean is above the MLP's by
        more than the standard deviation of that.

    Raises:
        ConfigError: if a method is none of VESPER's paper, or if some runs have noise for a budget
            and others of a given scale.
        PrivacyError: if no noise keeps a budget.
    """
    # Variants of a dataset are panels of their own.
    options = {column: part for column, part in study.options.items() if part != "dataset"}
    study = replace(
        study,
        options=options,
        short={**study.short, "dataset": {name: name for name in study.short["dataset"]}},
    )
    noise = pd.DataFrame([asdict(budget(given)) for given in study.specifications()])
    table = study.summary(noise.add_prefix(_OF_RUN)).drop(columns=list(noise), errors="ignore")
    table = table.rename(columns=lambda column: column.removeprefix(_OF_RUN))
    table["method"] = [without(name, _NO_NOISE) for name in table["method"]]
    noised = table[table["theta"] > 0]
    if noised["epsilon"].nunique() and noised["epsilon"].isna().any():
        raise ConfigError(
            f"studies.{study.name} has runs with epsilon and runs with theta; a trade-off is "
            "over one of them"
        )

    rivals = noised.groupby(["dataset", _axis(table)], sort=False)["validation_mean"]
    table["chosen"] = table.index.isin(rivals.idxmax()[rivals.size() > 1])
    table["above_mlp"] = False
    for _, block in table.groupby("dataset", sort=False):
        if mlp := _best(block, "vertical_mlp"):
            above = block["mean"] > mlp["mean"] + (mlp["std"] or 0.0)
            table.loc[block.index, "above_mlp"] = above & (block["theta"] > 0)
    table["place"] = [METHODS.index(variants.base(name)) for name in table["method"]]
    table = in_paper_order(table, ["dataset", "place"])
    columns = dict.fromkeys(["setting", "dataset", "method", *_options(study), *_SAID])
    found = {"table": table[list(columns)]}
    numbers = beside(table, study.entry["options"].get("stand_ins", {}))
    return {**found, "printed": numbers} if numbers["mean"].notna().any() else found


def beside(table: pd.DataFrame, stand_ins: Mapping[str, str]) -> pd.DataFrame:
    """The paper's numbers (:func:`printed`) beside ours of the same method, decoder and budget.

    Args:
        table: of :func:`tables`.
        stand_ins: for a graph of the paper another one on which ours are; by default the same.

    Returns:
        method, decoder, dataset and epsilon; published_mean and published_std; graph, that ours are
        of; seeds, mean, std, unfinished and stalled, of ours, NaN where there is no such run; of
        several lines those best on validation.
    """
    numbers = printed().rename(columns={"mean": "published_mean", "std": "published_std"})
    numbers["graph"] = numbers["dataset"].replace(stand_ins)
    method = table["method"].map(variants.base)
    concat = pd.Series("concat", table.index).where(method.str.contains("gin|gcn"))
    ours = table.assign(
        graph=table["dataset"].map(variants.base),
        method=method,
        decoder=table.get("decoder", concat),
        epsilon=table["epsilon"].fillna(math.inf),
    )
    keys = ["graph", "method", "decoder", "epsilon"]
    ours = ours.sort_values("validation_mean", ascending=False).drop_duplicates(keys)
    return numbers.merge(ours[[*keys, "seeds", "mean", "std", *FLAWS]], how="left", on=keys)


def printed() -> pd.DataFrame:
    """Accuracies of VESPER's Table 3, of its Finance graph areas under the ROC curve: dataset,
    method, decoder (``concat`` or ``gru``; NA where the paper names none), epsilon (∞ without
    privacy), mean, std.
    """
    numbers = pd.read_csv(STUDIES / "vesper" / "published" / "vesper.csv")
    names = numbers["method"].str.extract(r"^(?P<method>.+?)(?:_(?P<decoder>concat|gru))?$")
    without_noise = names["method"].isin(["mlp", "gin", "gcn"])
    return names.assign(
        dataset=numbers["dataset"].str.replace("-", "_"),
        method=names["method"].mask(without_noise, "vertical_" + names["method"]),
        epsilon=numbers["epsilon"].astype(float),
        mean=numbers["mean_percent"] / 100,
        std=numbers["std"] / 100,
    )


def _options(study: Study) -> list[str]:
    """What may tell lines apart: neither budget nor noise."""
    return [column for column in study.columns("setting", "method") if column not in _NO_NOISE]


def _axis(table: pd.DataFrame) -> str:
    return "epsilon" if table["epsilon"].notna().any() else "theta"


def _best(block: pd.DataFrame, method: str) -> dict[str, Any] | None:
    """Of the rows of a method the one that is best on validation."""
    rows = [row for row in records(block) if variants.base(row["method"]) == method]
    return max(rows, key=lambda row: row["validation_mean"], default=None)


def _named(study: Study, block: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a dataset with name, the method with those of its options that have several
    values there, and place, the budget or θ, or what stands for no noise.
    """
    rows, axis = [], _axis(block)
    for method, of in block.groupby(block["method"].map(variants.base), sort=False):
        several = [
            column
            for column in ("setting", *_options(study))
            if of[column].nunique(dropna=False) > 1
        ]
        for row in records(of):
            place = float(row[axis]) if row["theta"] else _NO_NOISE[axis]
            rows.append(
                {
                    **row,
                    "base": method,
                    "place": place,
                    "name": md.line_name({**row, "method": method}, several),
                }
            )
    return rows


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """A section a dataset: a line a model and budget; then the paper's numbers that have ours
    beside them.
    """
    table = tables["table"]
    short = distinguishing(table["method"])
    table = table.assign(method=table["method"].map(short))
    columns = [
        "method",
        *_options(study),
        "epsilon",
        "mean",
        "theta",
        "delta",
        "guarantee",
        "paper_epsilon",
    ]
    text = (
        ""
        if printed()["dataset"].isin(table["dataset"].map(variants.base)).any()
        else "None of these graphs is among the paper's three: ogbn-products, Reddit, and a "
        "Finance graph. "
    )
    parts = [
        f"{text}The Finance graph is not public.",
        md.in_common(short).strip(),
        md.shown(table, columns, ["dataset"]),
    ]
    if "printed" in tables:
        parts += ["## VESPER paper", _printed_section(tables["printed"])]
    return "\n\n".join(filter(None, parts))


def _printed_section(numbers: pd.DataFrame) -> str:
    """How many numbers the paper prints and have ours beside them, the graphs of both, and these
    numbers.
    """
    known = numbers[numbers["mean"].notna()]
    graphs = [
        f"{each.title} ({each.nodes:,} nodes, {each.classes} classes)"
        for name in pd.unique(known[["dataset", "graph"]].to_numpy().ravel())
        for each in [REGISTRY[name]]
    ]
    columns = ["dataset", "method", "decoder", "epsilon", "published_mean", "graph", "mean"]
    return (
        f"Of {len(numbers)} numbers of its Table 3, {len(known)} have one of ours beside them, of "
        f"{' and '.join(graphs)}. Numbers of two graphs neither agree nor disagree.\n\n"
        f"{md.shown(known.assign(graph=known['graph'].map(dataset_title)), columns, [])}"
    )


def _label(place: float) -> str:
    return "no noise" if place in _NO_NOISE.values() else f"{place:g}"


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a dataset: accuracy over the budget or θ, a line a model with noise, with standard
    deviations.

    Methods without noise are horizontal lines, of the options that are best on validation.
    """
    table = tables["table"]
    axis = {"epsilon": "privacy budget ε", "theta": "noise scale θ"}[_axis(table)]
    panels = {}
    for dataset, block in table.groupby("dataset", sort=False):
        flat = [
            {**row, "place": None, "name": method_title(name)}
            for name in _NOT_PRIVATE
            if (row := _best(block, name))
        ]
        noised = [row for row in _named(study, block) if row["base"] not in _NOT_PRIVATE]
        panels[dataset_title(str(dataset))] = [*flat, *noised]
    above, of = int(table["above_mlp"].sum()), int((table["theta"] > 0).sum())
    title = f"With noise {above or 'none'} of {of} results beat an MLP, which reads no edges"
    return figures.lines(
        f"{title}\n{study.title}",
        panels,
        lambda row: row["place"],
        lambda row: row["name"],
        labels=(axis, "test accuracy"),
        text=_label,
    )
