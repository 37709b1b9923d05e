"""Mended neighbourhoods: averages over the right nodes, every node counted once, and the paper's numbers where they belong."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from small import case_of, of_run, page, small_task

from feddep.experiment.plan import Run
from feddep.graph.halo import missing_neighbours
from feddep.methods.method import StepResult
from feddep.methods.shared.impairing_clients import impair_client
from feddep.training.task import Task
from feddep.utils.errors import ConfigError
from studies.measuring import frame
from studies.neighbourhoods.measure import NEIGHBOURHOODS, NORMS, local_distances, measure, neighbourhood_distances
from studies.neighbourhoods.page import figure, summarise, summarise_counts

NEIGHGEN = {"embedding": 8, "generator_width": 8, "generator_local_epochs": 2, "generator_federated_epochs": 1}


@pytest.fixture(scope="module")
def case() -> tuple[Task, StepResult, dict[str, Any]]:
    """A run's task, its generators' results, and what is measured."""
    found = case_of("fedsage_plus", small_task(), **NEIGHGEN)
    return found.task, found.step("generator"), measure(found)


def test_distances_are_averaged_over_all_nodes_and_over_those_that_miss_a_neighbour(case):
    task, made, tables = case
    rows = {(row["nodes"], row["neighbourhood"]): row for row in tables["distances"]}
    names = [*NEIGHBOURHOODS, *NORMS]
    assert list(rows) == [(nodes, name) for nodes in ("all", "missing") for name in names]
    missing = np.diff(missing_neighbours(task.graph, task.partition).indptr) > 0
    mended = neighbourhood_distances(task.graph, task.partition, made)["mended"]
    assert rows["all", "mended"]["mean"] == pytest.approx(mended.mean())
    assert rows["missing", "mended"]["mean"] == pytest.approx(mended[missing].mean())
    assert rows["missing", "mended"]["std"] == pytest.approx(mended[missing].std(ddof=1), rel=1e-5)
    assert rows["missing", "mended"]["count"] == missing.sum()
    # Who misses nobody has the true neighbourhood.
    assert rows["all", "local"]["mean"] * 240 == pytest.approx(rows["missing", "local"]["mean"] * missing.sum())


def test_every_node_is_counted_with_what_it_misses(case):
    task, made, tables = case
    rows = tables["counts"]
    assert sum(row["nodes"] for row in rows) == 240
    assert sum((row["degree"] + row["missing"]) * row["nodes"] for row in rows) == task.graph.degrees.sum()
    lost = missing_neighbours(task.graph, task.partition).nnz
    assert sum(row["missing"] * row["nodes"] for row in rows) == lost
    assert sum(row["predicted"] * row["nodes"] for row in rows) == sum(
        np.rint(each.numpy()).sum() for each in made.of_clients("count")
    )


def test_what_degrees_let_expect_is_true_where_nodes_are_hidden(case):
    """As many neighbours are hidden from a node, on average, as its remaining ones times the odds of being hidden."""
    task, _, tables = case
    odds = {row["expected"] / row["degree"] for row in tables["counts"] if row["degree"]}
    assert len({round(each, 9) for each in odds}) == 1
    parameters = case_of("fedsage_plus", task, steps=False, **NEIGHGEN).parameters
    impaired = [impair_client(task, parameters, i, client) for i, client in enumerate(task.subgraphs())]
    remaining = sum(each.graph.degrees.sum() for each in impaired)
    assert odds.pop() * remaining == pytest.approx(sum(each.missing.sum() for each in impaired), rel=0.2)


def test_zeros_in_the_true_number_dilute_what_is_at_hand(case):
    task, made, _ = case
    counted = neighbourhood_distances(task.graph, task.partition, made)["counted"]
    lost = missing_neighbours(task.graph, task.partition)
    node = int(np.diff(lost.indptr).argmax())
    others = lost[[node]].indices
    whole = task.graph.features[task.graph.adjacency[[node]].indices].toarray()
    expected = task.graph.features[others].toarray().sum(axis=0) / len(whole)  # what zeros stand for is all that is wrong
    assert counted[node] == pytest.approx(np.linalg.norm(expected), rel=1e-5)
    assert counted[np.diff(lost.indptr) == 0].max() < 1e-6


def test_local_distances_of_other_features(case):
    """With the graph's own features they are those of Table 1; scaled ones grow in proportion."""
    task, made, tables = case
    graph, local = task.graph, neighbourhood_distances(task.graph, task.partition, made)["local"]
    assert local_distances(graph, task.partition, graph.features) == pytest.approx(local, abs=1e-5)
    assert local_distances(graph, task.partition, 3 * graph.features) == pytest.approx(3 * local, abs=3e-5)
    means = {row["neighbourhood"]: row["mean"] for row in tables["distances"] if row["nodes"] == "all"}
    dense = graph.features.toarray()
    by_sum = sp.csr_matrix(dense / np.maximum(np.abs(dense).sum(axis=1, keepdims=True), 1e-12))
    assert means["local_l1"] == pytest.approx(local_distances(graph, task.partition, by_sum).mean(), rel=1e-4)
    assert 0 < means["local_l1"] < means["local_l2"] < np.sqrt(2)


@pytest.mark.parametrize("name", ["fedavg", "feddep"])
def test_without_generated_features_there_is_nothing_to_compare(name):
    few = {"prototypes": 3, "embedding": 4, "pretraining_epochs": 1, "generator_epochs": 1} if name == "feddep" else {}
    with pytest.raises(ConfigError):
        measure(case_of(name, small_task(), **few))


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    """Two methods, two seeds, measured: mending halves the distance of FedSage+, and 3 of 4 nodes miss nobody."""
    distances, counts = [], []
    for run in (Run("quick", "cora", 3, name, seed) for name in ("fedsage_plus", "fedsage_plus_shared") for seed in (0, 1)):
        mean = {"local": 0.4 + 0.2 * run.seed, "mended": 0.2 + 0.1 * run.seed, "empty": 0.3, "counted": 0.25}
        mean |= {"local_l1": 0.02, "local_l2": 0.07}
        distances += [
            {**of_run(run), "nodes": nodes, "neighbourhood": name, "count": 4, "mean": mean[name] * factor, "std": 0.1}
            for nodes, factor in (("all", 1), ("missing", 4))
            for name in mean
        ]
        pairs = [(0, 0, 2), (0, 1, 1), (2, 1 + run.seed, 1)]  # 2 of 4 right with seed 0, 3 of 4 with seed 1
        counts += [
            {**of_run(run), "missing": missing, "predicted": number, "degree": 4, "expected": 0.4 + 0.8 * missing, "nodes": size}
            for missing, number, size in pairs
        ]
    return {"distances": frame(distances), "counts": frame(counts)}


def test_distances_stand_beside_the_paper_s(tables):
    summary = summarise(tables["distances"])
    rows = summary.set_index(["method", "nodes", "neighbourhood"])
    assert rows.loc[("fedsage_plus", "all", "mended"), "mean"] == pytest.approx(0.25)
    assert rows.loc[("fedsage_plus", "all", "mended"), "seeds"] == 2
    assert rows.loc[("fedsage_plus", "all", "mended"), "paper_fedsage_mean"] == 0.0124
    assert rows.loc[("fedsage_plus", "all", "local"), "paper_fedsage_std"] == 0.0182
    assert rows["paper_fedsage_mean"].notna().sum() == 2  # neither of nodes that miss one, nor of the shared generator


def test_numbers_beside_guesses(tables):
    row = summarise_counts(tables["counts"]).iloc[0]
    assert row["missing"] == 0.25
    assert row["error"] == pytest.approx((2 / 4 + 1 / 4) / 2)
    assert row["error_none"] == 0.5
    assert row["error_mean"] == pytest.approx(0.5)  # the mean is 0.5, which rounds to 0
    assert row["error_degree"] == 0  # 0.4 and 2.0 round to 0 and 2
    assert row["correlation"] == pytest.approx((0.57735 + 0.87039) / 2, abs=1e-4)
    assert row["correlation_degree"] == pytest.approx(1)


def test_a_constant_prediction_has_no_correlation(tables):
    counts = tables["counts"].assign(predicted=1)
    summary = summarise_counts(counts)
    assert summary["correlation"].isna().all()
    assert summary["correlation_degree"].notna().all()


def test_the_figure_has_a_line_a_method(tables):
    drawn = figure(tables["counts"])
    (ax,) = drawn.axes
    assert ax.get_title(loc="left") == "Cora, M=3"
    mean, shared, _ = ax.get_lines()
    assert list(mean.get_xdata()) == list(shared.get_xdata()) == [0, 2]
    assert list(mean.get_ydata()) == pytest.approx([2 / 6, 1.5])
    assert ax.get_ylim()[1] == pytest.approx(1.15 * 1.5)  # what is predicted fills the panel
    (legend,) = drawn.legends
    names = ["FedSage+", "FedSage+ with a shared NeighGen", "as many as are missing"]
    assert [text.get_text() for text in legend.get_texts()] == names


def test_the_page(tables):
    made = page("neighbourhoods", **{name: table.to_dict("records") for name, table in tables.items()})
    assert "0.0168 ± 0.0182" in made["page.md"]  # the paper's
    assert "0.738" in made["page.md"]  # 0.0124 / 0.0168
    assert len(made["table.csv"]) == 2 * 2 * 6
    assert len(made["missing_neighbours.csv"]) == 2


def test_another_reading_has_a_long_name_and_no_number_of_the_paper(tables):
    distances, counts = tables["distances"], tables["counts"]
    reading = "fedsage_plus,hidden_from=validation,generator_batch=4096,scale=authors"
    assert summarise(distances.assign(method=reading))["paper_fedsage_mean"].isna().all()
    counts.loc[counts["method"] == "fedsage_plus_shared", "method"] = reading
    (legend,) = figure(counts).legends
    names = [" ".join(text.get_text().split()) for text in legend.get_texts()]
    assert "FedSage+, hidden_from=validation, generator_batch=4096, scale=authors" in names
