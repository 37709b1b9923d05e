"""The table of costs: sums and means by hand, and what is written of them."""

import pandas as pd
import pytest
from fabricated import MEGABYTE, ROUNDS, Results

from feddep.experiment.plan import Run
from feddep.reporting import costs, runs
from feddep.reporting.runs import FinishedRun


def run_of(method: str, seed: int, communication: list[tuple[str, int]], seconds: float, **before: float) -> FinishedRun:
    """A run of Cora with 2 clients that sent so many bytes of each kind."""
    rows = [{"client": 0, "direction": "up", "kind": kind, "messages": 1, "bytes": size} for kind, size in communication]
    provenance = {"seconds": seconds, "seconds_before": before}
    return FinishedRun(Run("sgd", "cora", 2, method, seed), {"communication": rows}, provenance)


def test_bytes_and_seconds_are_means_over_seeds() -> None:
    classifier = [("model", 100), ("training", 8), ("validation", 8)]
    finished = [
        run_of("feddep", 0, [*classifier, ("prototypes", 20)], 3.0, pretrain=1.0, prototypes=0.5, generator=2.0),
        run_of("feddep", 1, [*classifier, ("prototypes", 30)], 5.0, pretrain=2.0, prototypes=0.5, generator=4.0),
        run_of("fedavg", 0, classifier, 2.0),
    ]
    fedavg, feddep = (line for _, line in costs.summarise(finished).iterrows())
    assert (fedavg["method"], fedavg["bytes"], fedavg["bytes_beside"], fedavg["assumes"]) == ("fedavg", 116, 0, "")
    assert pd.isna(fedavg["seconds_generator"])
    assert (feddep["seeds"], feddep["bytes"], feddep["bytes_beside"]) == (2, 141, 25)
    assert feddep["assumes"] == "prototypes shared"
    assert feddep["seconds"] == pytest.approx(4)
    assert [feddep[f"seconds_{stage}"] for stage in costs.STAGES] == [1.5, 0.5, 3.0]


def test_the_page_has_a_line_for_every_row(results: Results) -> None:
    summary = costs.summarise(runs.load(results.config))
    page = costs.markdown(summary)
    assert len(summary) == 5
    assert summary.loc[summary["method"] == "fedavg", "bytes"].tolist() == [m * 2 * ROUNDS * MEGABYTE for m in (5, 10)]
    assert page.count("| Local ") == page.count("| FedAvg ") == 2
    assert page.count("whole graph in one place") == 1  # Global stands once, whatever the clients
