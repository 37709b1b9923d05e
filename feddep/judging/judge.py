"""Predictions of other code beside the recorded runs of a study.

Divisions are drawn here; of a file nothing is believed but the classes that it predicts.  Labels
are public, so that it proves arithmetic, and not training.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from feddep.config import variants
from feddep.experiment.plan import Run
from feddep.experiment.verification import Trainer
from feddep.judging import predictions
from feddep.judging.divisions import describe
from feddep.methods import registry
from feddep.methods.method import CROSS_CLIENT_EDGES, Method
from feddep.reporting import statistics
from feddep.reporting.frames import records
from feddep.reporting.load import Study
from feddep.reporting.studies import tuned
from feddep.training.evaluation import macro_f1, share, total
from feddep.training.evaluator import score
from feddep.utils.errors import ConfigError, DataError
from feddep.utils.parameters import Parameters

USES = {"cross_client_edges": CROSS_CLIENT_EDGES, "whole_graph": "whole graph in one place"}
"""What a method may use beyond FedAvg, and what a method of this package then assumes."""


def one_a_seed(planned: Sequence[Run]) -> dict[int, Run]:
    """By seed, ascending, a run of clients, whose division is that of all."""
    return {run.seed: run for run in sorted(planned, key=lambda run: run.seed) if run.clients}


def score_seeds(file: Path, planned: Sequence[Run], trainer: Trainer) -> pd.DataFrame:
    """What predictions of a graph are worth, a row a seed.

    Args:
        file: the predictions.
        planned: the runs that they stand beside.
        trainer: what draws the divisions.

    Returns:
        graph, its name; dataset and clients as tables have them; seed; test and validation, the
        shares of nodes that get their class or the area under the ROC curve; macro_f1;
        client_accuracies, a list; and worst_client, the least of them.

    Raises:
        DataError: if the file is refused, or is of another graph, other seeds or other divisions,
            or not of all validation and test nodes.
    """
    arrays, drawn, rows = predictions.read(file), one_a_seed(planned), []
    if arrays["seeds"].tolist() != [*drawn]:
        raise DataError(f"{file} is of seeds {arrays['seeds'].tolist()}; {[*drawn]} are needed")
    for row, (seed, run) in enumerate(drawn.items()):
        graph, split, partition = trainer.inputs(run)
        assert partition is not None
        metric = run.setting.options["metric"]
        division = describe(graph, split, partition)
        predictions.check(file, arrays, row, division, metric == "roc_auc")
        if "y_score" in arrays:
            ranks = torch.from_numpy(arrays["y_score"][row])
            logits = torch.stack([torch.zeros_like(ranks), ranks], dim=1)
        else:
            classes = torch.from_numpy(arrays["y_pred"][row]).long().clamp(min=0)
            logits = torch.eye(graph.num_classes)[classes]
        labels, counted = torch.from_numpy(graph.labels), {}
        for part, ids in (("validation", split.val), ("test", split.test)):
            owned = [ids[partition.client[ids] == i] for i in range(partition.num_clients)]
            counted[part] = [score(logits[own], labels[own], metric) for own in owned]
        accuracies = [share(*each) for each, _ in counted["test"]]
        rows.append(
            {
                "graph": run.dataset.name,
                "dataset": run.place.label,
                "clients": run.clients,
                "seed": seed,
                **{part: share(*total([each for each, _ in of])) for part, of in counted.items()},
                "macro_f1": macro_f1([by_class for _, by_class in counted["test"]]),
                "client_accuracies": accuracies,
                "worst_client": np.nanmin(accuracies),
            }
        )
    return pd.DataFrame(rows).astype({"clients": "Int64"})


RUN = ["seed", "key", "test", "validation", "worst_client", "macro_f1", "bytes", *statistics.FLAWS]
"""What a row of the leaderboard says of a run."""


def of_runs(given: Sequence[Mapping[str, Any]], planned: Sequence[Run]) -> pd.DataFrame:
    """The same of what a row says of the runs of a graph.

    Args:
        given: of each run :data:`RUN`.
        planned: the runs that they stand beside.

    Raises:
        DataError: if they are of other seeds.
    """
    drawn = one_a_seed(planned)
    if (seeds := [each["seed"] for each in given]) != [*drawn]:
        raise DataError(f"runs are of seeds {seeds}; {[*drawn]} are needed")
    run = drawn[seeds[0]]
    found = pd.DataFrame(given).assign(graph=run.dataset.name, dataset=run.place.label)
    return found.assign(clients=run.clients).astype({"clients": "Int64"})


@contextmanager
def named(name: str, uses: Iterable[str], title: str = "") -> Iterator[None]:
    """Make a method known that is not of this package, so that tables have its title and family.

    Raises:
        ConfigError: if its name is taken, or is no name.
    """
    if not name.isidentifier() or name in registry.methods():
        raise ConfigError(f"name is {name}; letters, digits and _ that name no method are allowed")
    assumes = tuple(USES[each] for each in uses)
    registry.ADDED[name] = Method(name, title or name, Parameters, "", assumes=assumes)
    try:
        yield
    finally:
        del registry.ADDED[name]


def rank(values: pd.DataFrame, own: str) -> str:
    """The rank of a method by its mean, the largest first, with the 95 % interval of a bootstrap
    over rows, which are seeds or graphs; a column a method.
    """
    each = values.to_numpy()
    draws = np.random.default_rng(0).integers(len(each), size=(10_000, len(each)))
    means = np.vstack([each.mean(axis=0), each[draws].mean(axis=1)])
    places = 1 + (means > means[:, [values.columns.tolist().index(own)]]).sum(axis=1)
    low, high = np.quantile(places[1:], [0.025, 0.975], method="nearest")
    return f"{places[0]} [{low}, {high}] of {each.shape[1]}"


def compare(found: Study, name: str, scored: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A method, which must be :func:`named`, beside recorded ones.

    Args:
        found: the recorded runs.
        name: the method.
        scored: what its predictions or runs are worth (:func:`score_seeds`, :func:`of_runs`).

    Returns:
        ``table``: a row a graph with the columns of
        :func:`feddep.reporting.studies.tuned.compared`, rank, and above_oracle, whether the method
        is better than FedAvg that knows all neighbours; ``over_graphs``: a row, of
        :func:`feddep.reporting.statistics.on_graphs`, with rank; ``gains``: the differences from
        each recorded method.
    """
    unknown = {
        **dict.fromkeys(statistics.FLAWS, False),
        **dict.fromkeys(("bytes", "seconds", "seconds_before"), np.nan),
    }
    own = scored.fillna(unknown).assign(method=name, setting="")
    own = own.assign(**{column: of for column, of in unknown.items() if column not in own})
    recorded = found.runs.assign(method=found.runs["method"].map(variants.base), setting="")
    every = pd.concat([recorded, own], ignore_index=True)
    pairs = statistics.pairs(recorded, own)
    pairs["difference"] *= -1
    gains = statistics.judged(statistics.differences(pairs, found.margin))
    above = gains[(gains["method"] == statistics.BOUND) & (gains["low"] > 0)]
    compared = tuned.compared(found, every)
    by_seed = {
        dataset: of.pivot(index="seed", columns="method", values="test")
        for dataset, of in every.groupby("dataset", sort=False)
    }
    ranks = {dataset: rank(values, name) for dataset, values in by_seed.items()}
    means = pd.DataFrame({dataset: values.mean() for dataset, values in by_seed.items()})
    table, pooled = (
        of[of["method"] == name] for of in (compared, statistics.on_graphs(compared, found.margin))
    )
    return {
        "table": table.assign(
            rank=table["dataset"].map(ranks), above_oracle=table["dataset"].isin(above["dataset"])
        ),
        "over_graphs": pooled.assign(rank=rank(means.dropna().T, name)),
        "gains": gains,
    }


def verdicts(tables: Mapping[str, pd.DataFrame], scored: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """What a row of the leaderboard says of the answers to both questions: by graph, and as
    ``over_graphs`` that on graphs like these, if there is one.

    Args:
        tables: of :func:`compare`.
        scored: what these were made of.
    """
    graphs = scored.groupby("dataset")["graph"].first()
    columns = ["mean_difference", "low", "high", "verdict"]
    on_each = tables["table"].assign(graph=tables["table"]["dataset"].map(graphs))
    pooled = tables["over_graphs"].assign(graph="over_graphs")
    return {
        row.pop("graph"): row
        for of in (on_each[["graph", *columns]], pooled[["graph", "graphs", *columns]])
        for row in records(of.round(6))
    }
