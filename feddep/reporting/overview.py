"""What the main tables say, in a few sentences with numbers, for the top of the report."""

import re
from collections.abc import Iterator
from typing import Any

import pandas as pd

from feddep.methods import registry
from feddep.reporting import published
from feddep.reporting.comparisons import REFERENCE
from feddep.reporting.frames import records
from feddep.reporting.labels import dataset_title, method_title, place_title, sort_datasets
from feddep.reporting.main_table import SIGNIFICANT
from feddep.reporting.results import Results

WHOLE = "global"
"""The method that stands for what could be reached without clients."""
CLAIMS = {"feddep": "feddep", "fedsage": "fedsage_plus"}
"""By paper the method that it proposes."""


def sentences(results: Results) -> list[str]:
    """One sentence each: what was run, the best method of each dataset, what is significant, the gap to Global, the papers.

    What the results do not allow to say, such as of FedAvg where it was not run, is left out.
    """
    found = [_size(results), *_best(results), *_significant(results), *_gap(results), *_claims(results)]
    return [re.sub(r"(?<![\w])-(?=\d)", "−", sentence) for sentence in found]


def _size(results: Results) -> str:
    summary = results.accuracy
    numbers = ", ".join(map(str, sorted(summary["clients"].dropna().unique())))
    seconds = sum(float(one.provenance.get("seconds", 0.0)) for one in results.finished)
    parts = [
        _counted(summary["method"].nunique(), "method"),
        _counted(summary["dataset"].nunique(), "dataset"),
        *([f"M = {numbers}"] if numbers else []),
        _counted(summary["setting"].nunique(), "setting"),
        _counted(max(summary["seeds"]), "seed"),
    ]
    return f"{_counted(len(results.finished), 'training run')}: {', '.join(parts)}; {seconds / 3600:.1f} hours of training."


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _rivals(results: Results) -> pd.DataFrame:
    """The comparisons of methods that could be used in FedAvg's place: neither on the whole graph nor oracles."""

    def usable(name: str) -> bool:
        method = registry.find(name)
        return method.partitioned and registry.ORACLE not in method.assumes

    return results.comparisons[results.comparisons["method"].map(usable).astype(bool)]


def _best(results: Results) -> Iterator[str]:
    """Of each dataset, by the mean difference over numbers of clients; seen on test nodes, so that it flatters."""
    rivals = _rivals(results)
    several = rivals["setting"].nunique() > 1
    for dataset in sort_datasets(rivals["dataset"]):
        found = []
        for setting, here in rivals[rivals["dataset"] == dataset].groupby("setting", sort=False):
            means = here.groupby("method", sort=False)["mean_difference"].mean().dropna()
            if len(means):
                name = str(means.idxmax())
                of_setting = f" (setting {setting})" if several else ""
                found.append(f"{method_title(name)}, {means[name]:+.4f}{of_setting}")
        if found:
            yield f"{dataset_title(dataset)}: best other than FedAvg, and its mean difference from it: {'; '.join(found)}."


def _significant(results: Results) -> Iterator[str]:
    tested = _rivals(results).dropna(subset="p_holm")
    if tested.empty:
        return
    clear = tested[tested["p_holm"] < SIGNIFICANT]
    above = int((clear["mean_difference"] > 0).sum())
    yield (
        f"{len(clear)} of {_counted(len(tested), 'difference')} from FedAvg are significant after Holm's correction: "
        f"{above} above it, {len(clear) - above} below."
    )
    if len(clear):
        line = records(clear.loc[[clear["mean_difference"].abs().idxmax()]])[0]
        yield f"The largest of these: {_told(line)}, {line['mean_difference']:+.4f} (p = {line['p_holm']:.3g})."


def _told(line: dict[str, Any]) -> str:
    return f"{method_title(line['method'])} on {_place(line)}"


def _place(line: dict[str, Any]) -> str:
    return f"{place_title(line['dataset'], line['clients'])} (setting {line['setting']})"


def _gap(results: Results) -> Iterator[str]:
    gaps = results.comparisons[results.comparisons["method"] == WHOLE].dropna(subset="mean_difference")
    if len(gaps):
        differences = gaps["mean_difference"]
        widest = records(gaps.loc[[differences.idxmax()]])[0]
        yield (
            f"Global − FedAvg, median of {_counted(len(gaps), 'cell')}: {differences.median():+.4f}; widest on "
            f"{_place(widest)}: {differences.max():+.4f}."
        )


def _claims(results: Results) -> Iterator[str]:
    """What each paper's method gains over FedAvg, here and in the paper, over cells that both have; in the paper's own setting
    if there is one of its name.
    """
    keys = ["setting", "dataset", "clients"]
    for paper, name in CLAIMS.items():
        summary = results.accuracy
        if (own := summary["setting"] == paper).any():
            summary = summary[own]
        means = ["mean", f"paper_{paper}_mean"]
        ours, reference = (summary[summary["method"] == each].set_index(keys)[means] for each in (name, REFERENCE))
        gains = (ours - reference).dropna()
        if len(gains):
            here, there = gains.mean()
            cells, title = _counted(len(gains), "cell"), published.PAPERS[paper]
            yield f"{method_title(name)} − FedAvg, mean of {cells}: {here:+.4f} here, {there:+.4f} in the {title}."
