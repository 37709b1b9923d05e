"""Statistics over seeds and graphs: means, and differences from a reference with their verdicts.
All tables take them from here.

Two questions have an answer.  *On this graph*: its random divisions are independent given the
graph, so differences are paired by seed.  *On graphs like these*: the graph is the unit.  A margin
says which differences are as good as none; it is the key ``margin`` of the configuration.
"""

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd

from feddep.config import variants
from feddep.reporting import inference
from feddep.reporting.labels import family, method_title

REFERENCE = "fedavg"
BOUND = "fedavg_oracle"
"""FedAvg whose clients know their true neighbours across the borders, an oracle."""
PLACE = ["setting", "dataset", "clients"]
FLAWS = ("unfinished", "stalled")
"""Flaws of a run (:func:`feddep.reporting.load.tidy`); tables have the shares of such
runs.  Where most runs have one, its name stands instead of a verdict, of two the last.
"""
DECIDED = ("better", "equivalent", "worse")
TESTS = ["p_holm", "p_no_gain", "p_equivalent", "p_equivalent_strict"]
JUDGED = ["won", *TESTS, "detectable", "verdict", "verdict_strict"]
"""Columns that :func:`judged` adds to a difference with its p."""
SHOWN = ["mean_difference", "won", "verdict", "verdict_strict", "detectable"]
"""Columns of a judged difference that pages show."""
POOLED = [
    *("method", "graphs", *SHOWN),
    *("p_no_gain", "probable_better", "probable_equivalent", "probable_worse"),
]
"""Columns of :func:`on_graphs` that pages show."""
HOW_JUDGED = """\
Differences are paired by seed, and independent given the graph, whose random divisions the seeds
draw; brackets: their 95 % t-interval; *won*: the share of seeds in which it is above 0. *Verdict*,
on this graph: *equivalent*, the difference is within the margin by two one-sided t-tests (TOST);
else *better* or *worse*, a paired t-test finds a difference; else *undecided*. All at 5 % after
Holm's correction over the tests on a graph, apart for the methods in *italics*, which use edges
across clients, the whole graph or an oracle, and for Local, the control. *Strict*: at the stricter
margin. *Seen with 80 %*: the difference that these seeds would have shown with 80 % power at the
level of Holm's first step. A difference most of whose runs stalled, or were *unfinished*, their
best round among the last 5 %, enters no verdict.
"""
HOW_POOLED = """\
The graph is the unit; numbers of clients and partitions of one graph are averaged, and what has no
verdict there is left out. *Verdict*, on graphs like these: *equivalent*, the mean difference is
within the margin by TOST over graphs; else *better* or *worse*, Wilcoxon's signed-rank test finds a
difference; else *undecided*. *p, no gain*: of the one-sided t-test that the mean gain is below the
margin. All at 5 % after Holm's correction, apart for the methods in *italics*, which use edges
across clients, the whole graph or an oracle, and for Local, the control. *Strict*: at the stricter
margin. *Won*: the share of graphs on which the difference is above 0. *Seen with 80 %*: the mean
difference that a t-test over so many graphs would have shown with 80 % power at the level of Holm's
first step. *Probable*: posterior probabilities that a method is better, equivalent and worse, by
the Bayesian signed-rank test.
"""
LOCAL = ("local_before", "local_after")
MEANS = ("validation", *LOCAL, "best_round", *FLAWS, "bytes", "seconds", "seconds_before")
"""Columns whose mean over seeds a summary has, beside test accuracy."""


def summarise(runs: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Summarise runs (:func:`feddep.reporting.load.tidy`) over seeds, one row for each value of the
    keys, in their order.

    Returns:
        The keys; seeds; mean, std: test accuracy at the round best on validation, and its sample
        standard deviation; last_mean, last_std: the same after the last round; of each of
        :data:`MEANS` the mean, such as validation_mean, but :data:`FLAWS`, bytes and seconds under
        their own names; of local accuracies also the deviation, and NaN where a seed has none;
        client_std: sample standard deviation over all clients' own models and seeds;
        trained_rounds, the most of any run.
    """
    groups = runs.groupby(keys, sort=False, dropna=False)
    summary = groups.agg(
        seeds=("seed", "size"),
        mean=("test", "mean"),
        std=("test", "std"),
        last_mean=("test_last", "mean"),
        last_std=("test_last", "std"),
        **{f"{name}_mean": (name, "mean") for name in MEANS},
        **{f"{name}_std": (name, "std") for name in LOCAL},
        client_std=("client_accuracies", lambda lists: pd.Series(lists.sum(), dtype=float).std()),
        trained_rounds=("trained_rounds", "max"),
    )
    for name in LOCAL:
        columns = [f"{name}_mean", f"{name}_std"]
        summary[columns] = summary[columns].where(groups[name].count() == summary["seeds"])
    own_name = {f"{name}_mean": name for name in (*FLAWS, "bytes", "seconds", "seconds_before")}
    return (
        summary.rename(columns=own_name)
        .reset_index()
        .assign(bytes=lambda table: table["bytes"].round().astype("int64"))
    )


def pairs(runs: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Test accuracy of methods less that of another, wherever both have a run of the same setting,
    dataset, clients and seed.

    Both runs of a pair share everything that the seed decides: split, partition and initial
    weights.  A method that sees the whole graph is paired with the other at each number of clients.

    Returns:
        setting, dataset, clients, method, seed, difference; unfinished and unfinished_of,
        whether the run and that of the reference are; stalled, whether either is.
    """
    columns = [*PLACE, "seed", "test", *FLAWS]
    both = runs[["method", *columns]].merge(
        reference[columns], on=["setting", "dataset", "seed"], suffixes=("", "_of")
    )
    here, there = both["clients"], both["clients_of"]
    both = both[here.isna() | there.isna() | (here == there).fillna(False)]
    kept = ["setting", "dataset", "method", "seed", "unfinished", "unfinished_of"]
    return both[kept].assign(
        clients=both["clients"].fillna(both["clients_of"]),
        difference=both["test"] - both["test_of"],
        stalled=both[["stalled", "stalled_of"]].any(axis="columns"),
    )


def compare(runs: pd.DataFrame, reference: pd.DataFrame, margin: Mapping[str, Any]) -> pd.DataFrame:
    """Differences of methods from a reference, paired by seed, with verdicts: a row a method,
    setting, dataset and number of clients.

    Returns:
        method, :data:`PLACE`, and what :func:`difference` and :func:`judged` give.
    """
    return judged(differences(pairs(runs, reference), margin))


def differences(found: pd.DataFrame, margin: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of :func:`compare` without verdicts, of :func:`pairs`."""
    keys = ["method", *PLACE]
    rows = [
        {**dict(zip(keys, cast(tuple, key), strict=True)), **difference(of, margin)}
        for key, of in found.groupby(keys, sort=False, dropna=False)
    ]
    table = pd.DataFrame(rows, columns=[*keys, *difference(found[:0], margin)])
    return table.astype({"clients": "Int64"})


def difference(found: pd.DataFrame, margin: Mapping[str, Any]) -> dict[str, float]:
    """What :func:`tested` says of the differences of :func:`pairs`; seeds, their number; and
    :data:`FLAWS`, unfinished the larger share of the two sides.
    """
    sides = found[["unfinished", "unfinished_of"]].astype(float).mean()
    return {
        "seeds": len(found),
        **tested(found["difference"], margin),
        "unfinished": float(sides.max()),
        "stalled": float(found["stalled"].astype(float).mean()),
    }


def tested(values: Any, margin: Mapping[str, Any]) -> dict[str, float]:
    """:func:`feddep.reporting.inference.t_test` of differences; won, the share above 0; p_no_gain,
    of the one-sided test that the mean is below the margin; p_equivalent and p_equivalent_strict,
    of the equivalence test at both margins.
    """
    no_gain, no_loss = inference.margin_tests(values, margin["accuracy"])
    return {
        **inference.t_test(values),
        "won": float((np.asarray(values) > 0).mean()) if len(values) else math.nan,
        "p_no_gain": no_gain,
        "p_equivalent": max(no_gain, no_loss),
        "p_equivalent_strict": max(inference.margin_tests(values, margin["strict"])),
    }


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """Verdicts on the question what holds on this graph.

    Args:
        table: rows of :func:`difference` with method and dataset, which is empty where a row is
            over several.

    Returns:
        The rows with p_holm, which is p after Holm's correction over the rows of a graph and family
        of methods, and the other tests corrected likewise; detectable, the difference seen with
        80 % power; verdict, and verdict_strict, at the stricter margin.
    """
    graph = table["dataset"].map(variants.base, na_action="ignore")
    return _corrected(table.assign(p_holm=table["p"]), table["seeds"], [graph])


def on_graphs(table: pd.DataFrame, margin: Mapping[str, Any]) -> pd.DataFrame:
    """Verdicts on the question what holds on graphs like these: the graph is the unit.

    Args:
        table: rows of :func:`judged`; those of one graph, such as with other numbers of clients or
            partitions, are averaged, those without a verdict left out.
        margin: that of the configuration.

    Returns:
        A row a method, the largest gain first: graphs, their number; what :func:`judged` has, of
        their mean differences, with p_holm of Wilcoxon's signed-rank test; and probable_better,
        probable_equivalent and probable_worse
        (:func:`feddep.reporting.inference.region_probabilities`).
    """
    sound = table[(flaws(table) == "") & table["mean_difference"].notna()]
    graph = sound["dataset"].map(variants.base)
    means = sound.groupby(["method", graph], sort=False)["mean_difference"].mean()
    rows = [
        {
            "method": method,
            "graphs": len(values),
            **tested(values, margin),
            "p_holm": inference.wilcoxon(values),
            **_probable(values, margin),
            **dict.fromkeys(FLAWS, 0.0),
        }
        for method, values in means.groupby("method", sort=False)
    ]
    columns = ["method", "graphs", *tested([], margin), "p_holm", *_probable([], margin), *FLAWS]
    found = pd.DataFrame(rows, columns=columns)
    found = found.sort_values("mean_difference", ascending=False, kind="stable", ignore_index=True)
    return _corrected(found, found["graphs"], [])


def _probable(values: Any, margin: Mapping[str, Any]) -> dict[str, float]:
    found = inference.region_probabilities(values, margin["accuracy"])
    return {f"probable_{word}": p for word, p in zip(DECIDED, found, strict=True)}


def _corrected(table: pd.DataFrame, units: pd.Series, by: list[pd.Series]) -> pd.DataFrame:
    """Rows with their tests corrected within what ``by`` and the family of a method tell apart,
    with detectable and verdicts; ``units`` are the numbers of differences.
    """
    flawed = flaws(table)
    tests = table[TESTS].astype(float).mask(flawed != "")
    families = tests.groupby([*by, table["method"].map(family)], dropna=False)
    counts = families["p_holm"].transform("count").clip(lower=1)
    table = table.assign(
        detectable=list(map(inference.detectable, table["std_difference"], units, counts)),
        **{name: families[name].transform(inference.holm) for name in TESTS},
    )
    for end in ("", "_strict"):
        tested = zip(
            table["mean_difference"], table["p_holm"], table[f"p_equivalent{end}"], strict=True
        )
        words = [inference.verdict(*each) for each in tested]
        table[f"verdict{end}"] = flawed.where(flawed != "", words)
    return table


def flaws(table: pd.DataFrame) -> pd.Series:
    """The flaw that most runs of each row have, or an empty text."""
    words = pd.Series("", index=table.index)
    for flaw in FLAWS:
        words = words.mask(table[flaw] > 0.5, flaw)
    return words


def counted(table: pd.DataFrame) -> str:
    """How many differences have each verdict, such as ``9 differences: 2 worse, 7 undecided``."""
    counts = table["verdict"].value_counts()
    words = [f"{counts[word]} {word}" for word in (*DECIDED, "undecided", *FLAWS) if word in counts]
    return f"{counts.sum()} differences: {', '.join(words)}"


def finding(table: pd.DataFrame, margin: Mapping[str, Any]) -> str:
    """What judged differences say in a sentence: which methods beat the reference by the margin, of
    those that see no more of the graph than it, or of all where there are no others.
    """
    sees = table["method"].map(family)
    judged = table["verdict"].isin([*DECIDED, "undecided"])
    asked = judged & (sees == ("candidates" if "candidates" in set(sees[judged]) else "more"))
    if not asked.any():
        return "No difference has a verdict"
    won = (table["verdict"] == "better") & (table["mean_difference"] >= margin["accuracy"])
    lost = (table["verdict"] == "worse") & (table["mean_difference"] <= -margin["accuracy"])
    reference = method_title(variants.base(table["reference"].iloc[0]))
    reference += "," if "," in reference else ""
    by = "a percentage point" if margin["accuracy"] == 0.01 else f"{margin['accuracy']:g}"
    found = f"No method beats {reference} by {by}"
    for ends, verbs in ((won, ("beat", "beats")), (lost, ("lose to", "loses to"))):
        names = dict.fromkeys(table["method"][asked & ends].map(variants.base).map(method_title))
        often = f"{(asked & ends).sum()} of {asked.sum()} cases"
        if names and (ends is won or 2 * (asked & ends).sum() > asked.sum()):
            who = " and ".join(names) if len(names) <= 3 else f"{len(names)} methods"
            found = f"{who} {verbs[len(names) == 1]} {reference} by {by} in {often}"
            break
    more = judged & (sees == "more") & ~asked
    if (more & won).any():
        found += f"; those that see more of the graph do in {(more & won).sum()} of {more.sum()}"
    return found
