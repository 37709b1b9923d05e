"""Kind ``tradeoff``: accuracy over the privacy budget ε or the noise scale θ, as in VESPER's Table 1 and Figure 2 (a) to (c)."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from feddep.config import variants
from feddep.privacy.formatting import format_number
from feddep.reporting import drawing, published
from feddep.reporting import markdown as md
from feddep.reporting.frames import records
from feddep.reporting.labels import dataset_title, method_title, sort_datasets
from feddep.reporting.main_table import OURS
from feddep.reporting.runs import FinishedRun, unspecified
from feddep.reporting.study_data import Study, line_name, ordered, summarise_with, without
from feddep.reporting.undertrained import mark
from feddep.reporting.vesper_budgets import METHODS, budget
from feddep.utils.errors import ConfigError

SHOWS = """\
Test accuracy, mean ± sample standard deviation over the seeds, at the round that is best on validation nodes, over the privacy
budget ε of an edge, or where no budget is given over the noise scale θ.

- **Bold**: of the models with noise in a column, the one that is best on validation nodes; it need not be the best on test nodes.
- †: above the MLP, which sees no edge, by more than the MLP's standard deviation. Models with noise that are not are of no use:
  leaving the graph out costs no privacy.
- Where a method without noise has several lines, the † and the figure's horizontal lines are of the one that is best on
  validation nodes.
- θ: the standard deviation of the noise on each number of a row of norm 1. A budget's θ is the least that keeps it by the account
  that the method's option `accountant` names.
- *ε proven*: what the account `corrected` of docs/vesper.md proves for that θ and the same δ; ∞ where no finite ε is proven, as
  with weights that are trained through edges, neighbours that are sampled anew in every step, or degrees without noise.
- *ε by the paper's account*: by `library`, whose claim does not hold (docs/vesper.md); none for rows that are released once.
"""
NOT_PRIVATE = ("vertical_mlp", "vertical_gin", "vertical_gcn")
"""The methods without noise, the MLP first."""
_NOISE = ("epsilon", "theta")  # options that stand on the axis
_NO_NOISE = {"epsilon": math.inf, "theta": 0.0}
_SIGNS = {"epsilon": "ε", "theta": "θ"}
_OF_RUN = "of run: "
_SAID = ("seeds", "mean", "std", "last_mean", "validation_mean", "undertrained")
_COLUMNS = [*_SAID, "theta", "delta", "guarantee", "paper_epsilon", "bytes", "chosen", "above_mlp"]


def tables(study: Study) -> dict[str, pd.DataFrame]:
    """A row a dataset as it is spelled, method and choice of options.

    Returns:
        setting, dataset, method, the study's other options; epsilon, the budget (NaN without one); seeds, mean, std,
        last_mean, validation_mean, undertrained and bytes as :func:`feddep.reporting.study_data.summarise` gives them; theta,
        delta, guarantee and paper_epsilon as in :class:`feddep.reporting.vesper_budgets.Budget`; chosen: whether it is the best
        on validation of what has noise, on the same dataset and with the same budget or θ, where there are several; above_mlp:
        whether it has noise, and its mean is above the MLP's by more than the standard deviation of that.

    Raises:
        ConfigError: if a method is none of VESPER's paper, if some runs have noise for a budget and others of a given scale,
            or if δ is to be computed from the edges of a synthetic graph.
        DataError: if a result does not say what it was made with.
        PrivacyError: if no noise keeps a budget.
    """
    graphs = {spelled: spelled for spelled in study.short["dataset"]}
    options = {column: part for column, part in study.options.items() if part != "dataset"}
    study = replace(study, options=options, short={**study.short, "dataset": graphs})
    noise = pd.DataFrame([_noise(one) for one in study.finished])
    table = summarise_with(study, noise.add_prefix(_OF_RUN))
    table = table.drop(columns=list(noise), errors="ignore").rename(columns=lambda column: column.removeprefix(_OF_RUN))
    table["method"] = [without(name, _NOISE) for name in table["method"]]
    noised = table[table["theta"] > 0]
    if noised["epsilon"].nunique() and noised["epsilon"].isna().any():
        raise ConfigError(f"studies.{study.name} has runs with epsilon and runs with theta; a trade-off is over one of them")

    rivals = noised.groupby(["dataset", _axis(table)], sort=False)["validation_mean"]
    table["chosen"] = table.index.isin(rivals.idxmax()[rivals.size() > 1])
    table["above_mlp"] = False
    for _, block in table.groupby("dataset", sort=False):
        if mlp := _best(block, NOT_PRIVATE[0]):
            above = block["mean"] > mlp["mean"] + (mlp["std"] or 0.0)
            table.loc[block.index, "above_mlp"] = above & (block["theta"] > 0)
    ranks = pd.DataFrame(
        {
            "dataset": table["dataset"].map(sort_datasets(table["dataset"]).index),
            "method": table["method"].map(lambda name: METHODS.index(variants.base(name))),
        }
    )
    table = table.loc[ranks.sort_values(["dataset", "method"], kind="stable").index].reset_index(drop=True)
    return {"table": table[list(dict.fromkeys(["setting", "dataset", "method", *_options(study), "epsilon", *_COLUMNS]))]}


def _noise(one: FinishedRun) -> dict[str, float]:
    """Budget, noise and guarantees of a run."""
    try:
        return asdict(budget(one.result["specification"]))
    except KeyError as error:
        raise unspecified(one, error) from None


def _options(study: Study) -> list[str]:
    """What may tell lines apart: neither budget nor noise, nor a dataset's options, whose variants are panels of their own."""
    return [column for column in study.columns("setting", "method") if column not in _NOISE]


def _axis(table: pd.DataFrame) -> str:
    return "epsilon" if table["epsilon"].notna().any() else "theta"


def _best(block: pd.DataFrame, method: str) -> dict[str, Any] | None:
    """Of the rows of a method the one that is best on validation."""
    rows = [line for line in records(block) if variants.base(line["method"]) == method]
    return max(rows, key=lambda line: line["validation_mean"], default=None)


Lines = dict[str, dict[float, dict[str, Any]]]
"""Rows of a dataset by the name of their line, then by budget or θ, or what stands for no noise."""


def _models(block: pd.DataFrame) -> Iterable[tuple[str, pd.DataFrame]]:
    """The rows of each method, whatever its options."""
    return ((str(name), rows) for name, rows in block.groupby(block["method"].map(variants.base), sort=False))


def _varies(rows: pd.DataFrame, column: str) -> bool:
    return bool(rows[column].nunique(dropna=False) > 1)


def _lines(study: Study, block: pd.DataFrame, axis: str, brief: bool = False) -> Lines:
    """The lines of a dataset: methods with those of their options that have several values there; or ``brief``, with one of
    them if it tells the lines apart.
    """
    lines: Lines = {}
    for method, rows in _models(block):
        several = [column for column in ("setting", *_options(study)) if _varies(rows, column)]
        different = len(rows[several].drop_duplicates())
        if brief and (distinguishing := [column for column in several if rows[column].nunique(dropna=False) == different]):
            several = sorted(distinguishing, key=lambda column: study.options.get(column) != "method")[:1]
        for line in records(rows):
            place = float(line[axis]) if line["theta"] else _NO_NOISE[axis]
            lines.setdefault(line_name({**line, "method": method}, several), {})[place] = line
    return lines


def _places(lines: Lines) -> list[float]:
    return sorted({place for points in lines.values() for place in points})


def _label(place: float, axis: str, sign: str = "") -> str:
    return "no noise" if place == _NO_NOISE[axis] else f"{sign}{place:g}"


def markdown(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    """Which graphs are the paper's; then a section a dataset: a line a model, a column a budget, and below what the noise is."""
    table, paper = tables["table"], published.vesper()
    axis = _axis(table)
    same = [name for name in dict.fromkeys(table["dataset"]) if variants.base(name) in set(paper["dataset"])]
    parts = [
        f"Of these graphs {' and '.join(map(dataset_title, same)) or 'none'} is among the paper's three: ogbn-products, Reddit, "
        "and a Finance graph that is not public. For other graphs there are no published numbers to compare with.\n"
    ]
    for dataset, block in table.groupby("dataset", sort=False):
        lines = _lines(study, block, axis)
        theirs = paper[(paper["dataset"] == variants.base(str(dataset))) & (axis == "epsilon")]
        parts.append(f"## {dataset_title(str(dataset))}\n")
        if common := _in_common(study, block):
            parts.append(f"{common}\n")
        parts.append(_accuracy(lines, axis, theirs))
        if any(line["theta"] for points in lines.values() for line in points.values()):
            parts.append(_guarantees(lines, axis))
    return "\n".join(parts)


def _in_common(study: Study, block: pd.DataFrame) -> str:
    """δ, and the options that the study sets and that are the same in all lines of a model."""
    set_by: dict[str, list[str]] = {}
    for method, rows in _models(block):
        (line, *_), same = records(rows), [column for column in _options(study) if not _varies(rows, column)]
        changes = variants.read(line["setting"])[1] | variants.read(line["method"])[1]
        changes |= {column: line[column] for column in same if line[column] is not None and column != "delta"}
        for key in changes:
            set_by.setdefault(variants.format_name("", {key: changes[key]})[1:], []).append(method_title(method))
    everywhere = [method_title(method) for method, _ in _models(block)]
    options: dict[str, list[str]] = {}
    for option, models in set_by.items():
        if not option.startswith("delta="):
            options.setdefault("all models" if models == everywhere else ", ".join(models), []).append(option)
    deltas = [f"{delta:.3g}" for delta in ordered(block["delta"].dropna())]
    said = [f"δ = {' or '.join(deltas)}"] if deltas else []
    return "; ".join(said + [f"{models}: {', '.join(found)}" for models, found in options.items()])


def _accuracy(lines: Lines, axis: str, theirs: pd.DataFrame) -> str:
    """Accuracies, and below those of a method what the paper prints for it on the same graph."""
    places, source = _places(lines), [""] if len(theirs) else []
    rows = []
    names = list(lines)
    for name, after in zip(names, [*names[1:], None], strict=True):
        rows.append([name, *([OURS] if source else []), *(_cell(lines[name].get(place)) for place in places)])
        method = _method(lines[name])
        if after is None or _method(lines[after]) != method:
            for decoder, printed in theirs[theirs["method"] == method].groupby("decoder", sort=False, dropna=False):
                numbers = {line["epsilon"]: md.plus_minus(line["mean"], line["std"]) for line in records(printed)}
                form = line_name({"method": method, "decoder": decoder}, [] if pd.isna(decoder) else ["decoder"])
                rows.append([form, published.VESPER, *(numbers.get(place, "") for place in places)])
    return md.table(["", *source, *(_label(place, axis, f"{_SIGNS[axis]} = ") for place in places)], rows)


def _method(points: dict[float, dict[str, Any]]) -> str:
    return variants.base(next(iter(points.values()))["method"])


def _cell(line: dict[str, Any] | None) -> str:
    if line is None:
        return ""
    number = md.plus_minus(line["mean"], line["std"])
    return (f"**{number}**" if line["chosen"] else number) + (" †" if line["above_mlp"] else "") + mark(line["undertrained"])


def _guarantees(lines: Lines, axis: str) -> str:
    """θ, and what is proven and claimed for it, of what has noise."""
    noised = {name: {place: line for place, line in points.items() if line["theta"]} for name, points in lines.items()}
    noised = {name: points for name, points in noised.items() if points}
    places = _places(noised)
    shown = {"theta": "θ", "guarantee": "ε proven", "paper_epsilon": "ε by the paper's account"}
    rows = []
    for name, points in noised.items():
        for k, (column, title) in enumerate(shown.items()):
            numbers = [points[place][column] if place in points else None for place in places]
            rows.append(["" if k else name, title, *("" if number is None else format_number(number) for number in numbers)])
    return md.table(["", "", *(_label(place, axis, f"{_SIGNS[axis]} = ") for place in places)], rows)


def figure(study: Study, tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a dataset: accuracy over the budget or θ, a line a model with noise, with standard deviations.

    The values stand at equal distances.  Methods without noise are horizontal lines, of the options that are best on
    validation.
    """
    table = tables["table"]
    axis = _axis(table)
    blocks = {str(dataset): block for dataset, block in table.groupby("dataset", sort=False)}
    panels = {dataset: _noised(_lines(study, block, axis, brief=True)) for dataset, block in blocks.items()}
    # By method, whichever panel has a line first.
    methods = {name: _method(points) for lines in panels.values() for name, points in lines.items()}
    looks = _looks({name: methods[name] for name in sorted(methods, key=lambda name: METHODS.index(methods[name]))})
    with drawing.style():
        drawn, axes = drawing.tiles(len(panels), 3, lambda rows, columns: (0.6 + 3.2 * max(columns, 2), 1.5 + 2.5 * rows))
        for ax, (dataset, lines) in zip(axes.flat, panels.items(), strict=False):
            for method, look in _HORIZONTAL.items():
                if line := _best(blocks[dataset], method):
                    ax.axhline(line["mean"], **look)
            places = _places(lines)
            for k, (name, points) in enumerate(lines.items()):
                _draw(ax, points, places, 0.36 * ((k + 0.5) / len(lines) - 0.5), looks[name])
            ax.set_title(dataset_title(dataset), loc="left")
            ax.set_xticks(range(len(places)), [_label(place, axis) for place in places])
            ax.set_xlim(-0.5, len(places) - 0.5)
            ax.set_xlabel({"epsilon": "privacy budget ε", "theta": "noise scale θ"}[axis])
        for ax in axes[:, 0]:
            ax.set_ylabel("test accuracy")
        present = set(table["method"].map(variants.base))
        flat = [drawing.sample(method_title(name), **look) for name, look in _HORIZONTAL.items() if name in present]
        drawing.head(drawn, study.title, [*flat, *(drawing.sample(name, **look) for name, look in looks.items())], columns=4)
    return drawn


_HORIZONTAL: dict[str, dict[str, Any]] = dict(
    zip(
        NOT_PRIVATE,
        (
            {"color": "#000000", "linestyle": "-", "linewidth": 1.1},
            {"color": "#777777", "linestyle": "--", "linewidth": 0.9},
            {"color": "#777777", "linestyle": ":", "linewidth": 1.1},
        ),
        strict=True,
    )
)


def _noised(lines: Lines) -> Lines:
    """The lines of methods that can have noise."""
    return {name: points for name, points in lines.items() if _method(points) not in NOT_PRIVATE}


def _looks(methods: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """A colour and marker for each line, and a dash for each line of a method."""
    looks, seen = {}, list[str]()
    for k, (name, method) in enumerate(methods.items()):
        dash = drawing.DASHES[seen.count(method) % len(drawing.DASHES)]
        seen.append(method)
        looks[name] = {"color": drawing.colour(k), "marker": drawing.MARKERS[k % len(drawing.MARKERS)], "linestyle": dash}
    return looks


def _draw(ax: Axes, points: Mapping[float, dict[str, Any]], places: list[float], offset: float, look: dict[str, Any]) -> None:
    """One line, with standard deviations."""
    ordered_points = [points[place] for place in places if place in points]
    across = [k + offset for k, place in enumerate(places) if place in points]
    spreads = [line["std"] or 0.0 for line in ordered_points]
    means = [line["mean"] for line in ordered_points]
    ax.errorbar(across, means, yerr=spreads, markersize=3.5, linewidth=1.1, elinewidth=0.8, **look)
